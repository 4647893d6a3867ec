// The parts of the wall time: names and colours, the same in every section. In the order of pictures.
export const PARTS: { key: string; name: string; colour: string }[] = [
  { key: "forward", name: "Forward", colour: "forward" },
  { key: "backward", name: "Backward", colour: "backward" },
  { key: "optimizer", name: "Optimizer", colour: "optimizer" },
  { key: "data loading", name: "Data", colour: "data" },
  { key: "own Python", name: "Own Python", colour: "python" },
  { key: "waiting", name: "Waiting", colour: "waits" },
  { key: "waiting for the device", name: "Waiting for the device", colour: "stall" },
  { key: "compilation", name: "Compiling", colour: "compile" },
  { key: "recorder", name: "Recorder", colour: "recorder" },
];

// Why a device had nothing to do, the sorts of its work, and the places of a critical path.
export const DEVICE_COLOURS: Record<string, string> = {
  "host late": "python", synchronization: "waits", "memory copy": "memory", launch: "compile", "waiting for work": "scope", unknown: "recorder",
  host: "python", device: "forward", "earlier work": "scope",
  computation: "forward", communication: "optimizer", memory: "memory",
};

export const partName = (key: string): string => PARTS.find(part => part.key === key)?.name ?? key;
export const partColour = (key: string): string => `var(--${(PARTS.find(part => part.key === key) ?? PARTS.find(part => key.startsWith(part.key)))?.colour ?? "python"})`;

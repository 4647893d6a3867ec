import type { View } from "../view";
import { advice } from "./advice";
import { device } from "./device";
import { environment } from "./environment";
import { flame } from "./flame";
import { memory } from "./memory";
import { modules } from "./modules";
import { operators } from "./operators";
import { overview } from "./overview";
import { steps } from "./steps";
import { timeline } from "./timeline";

export const VIEWS: View[] = [overview, steps, operators, modules, timeline, flame, memory, device, advice, environment];

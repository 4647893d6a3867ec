// Bundles the pages: one HTML file each, with its script and style inside and their hashes in its content security policy.
//   node build.mjs           writes them
//   node build.mjs --check   fails if those that are there differ
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = name => fileURLToPath(new URL(name, import.meta.url));
const PAGES = [
  { script: "src/main.ts", style: "src/page.css", shell: "src/page.html", out: "../src/mindtorch_v2/profiler/output/report/report.html" },
  { script: "src/memory_main.ts", style: "src/memory_page.css", shell: "src/memory_page.html", out: "../src/mindtorch_v2/profiler/output/memory_page.html" },
];
const LICENCES = ["uplot"];

const bundle = async entry => {
  const options = { entryPoints: [here(entry)], bundle: true, minify: true, write: false, target: "es2022", format: "iife", charset: "ascii", legalComments: "none" };
  const result = await build(options);
  return result.outputFiles[0].text.trim();
};
const hash = text => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
const licence = name => {
  const { version } = JSON.parse(readFileSync(here(`node_modules/${name}/package.json`), "utf8"));
  return `${name} ${version}\n\n${readFileSync(here(`node_modules/${name}/LICENSE`), "utf8").trim()}`;
};

const differing = [];
for (const page of PAGES) {
  const [script, style] = [await bundle(page.script), await bundle(page.style)];
  if (script.includes("</script") || style.includes("</style")) throw new Error("the bundle would end its own element");
  const parts = {
    POLICY: `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; img-src data:; base-uri 'none'; form-action 'none'`,
    LICENCES: LICENCES.map(licence).join("\n\n").replaceAll("--", "- -"),
    STYLE: style,
    SCRIPT: script,
  };
  const shell = readFileSync(here(page.shell), "utf8");
  const text = shell.replace(/\{\{(POLICY|LICENCES|STYLE|SCRIPT)\}\}/g, (_, name) => parts[name]);
  const out = here(page.out);
  if (!process.argv.includes("--check")) {
    writeFileSync(out, text);
    console.log(`${page.out}: ${text.length} bytes`);
  } else if (readFileSync(out, "utf8") !== text) {
    differing.push(page.out);
  }
}
if (differing.length) {
  console.error(`${differing.join(", ")}: not what the sources make; run make report-ui`);
  process.exit(1);
}

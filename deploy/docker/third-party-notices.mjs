import { globSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/**
 * Prints the licenses of the packages that a folder contains in `node_modules`. The Dockerfile writes them to the image,
 * because most of these licenses require that copies of a package contain them.
 */
const [folder = "."] = process.argv.slice(2);
const licenseFile = /^(licen[cs]e|copying|notice)/i;

const notices = new Map();
for (const path of globSync("**/node_modules/{*,@*/*}/package.json", { cwd: folder })) {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, path), "utf8"));
  // Halyard's own packages are links to its folders, and have its license.
  if (name === undefined || name.startsWith("@halyard/")) continue;
  notices.set(`${name} ${version}`, { license, texts: readTexts(join(folder, dirname(path))) });
}

console.log("Halyard contains these packages of others, each under its own license.");
for (const [title, { license, texts }] of [...notices].sort(([a], [b]) => (a < b ? -1 : 1)))
  console.log(["", "-".repeat(80), `${title} (${describe(license)})`, ...texts].join("\n\n"));

function readTexts(packageFolder) {
  return readdirSync(packageFolder, { withFileTypes: true })
    .filter((entry) => entry.isFile() && licenseFile.test(entry.name))
    .map(({ name }) => readFileSync(join(packageFolder, name), "utf8").trim());
}

/** Old manifests have an object instead of an SPDX expression. */
function describe(license) {
  return license?.type ?? license ?? "license not stated";
}

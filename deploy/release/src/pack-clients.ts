import { execFileSync } from "node:child_process";
import {
  copyFileSync,
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { installCommand, type Manifest, packedManifest, tarballOf } from "./client-packages.ts";

/**
 * `npm run pack:clients [-- <folder>]`: builds the packages in `clients`, packs each into the folder (default:
 * `packages`), and prints the command that installs it. Packages are packed in a copy, because their manifests here
 * differ from the packed ones and other processes read them.
 */
const root = join(import.meta.dirname, "../../..");
const [given = "packages"] = process.argv.slice(2);
const destination = resolve(root, given);

/** Folders of packages, without the examples. */
const folders = globSync("clients/*/tsconfig.build.json", { cwd: root }).map(dirname).toSorted();
const manifests = folders.map(readManifest);

build();
pack();
printCommands();

function readManifest(folder: string): Manifest {
  return JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8")) as Manifest;
}

/** Builds all packages from scratch, so that no tarball contains a deleted module. */
function build(): void {
  for (const folder of folders)
    rmSync(join(root, folder, "dist"), { recursive: true, force: true });
  const projects = folders.map((folder) => `${folder}/tsconfig.build.json`);
  run("node_modules/.bin/tsc", "-b", "--force", ...projects);
}

function run(command: string, ...args: string[]): void {
  execFileSync(command, args, { cwd: root, stdio: ["ignore", "ignore", "inherit"] });
}

function pack(): void {
  const copies = mkdtempSync(join(tmpdir(), "halyard-pack-"));
  try {
    const rootManifest = readManifest(".");
    folders.forEach((folder, index) => {
      const copy = join(copies, basename(folder));
      cpSync(join(root, folder, "dist"), join(copy, "dist"), { recursive: true });
      copyFileSync(join(root, folder, "README.md"), join(copy, "README.md"));
      copyFileSync(join(root, "LICENSE"), join(copy, "LICENSE"));
      const manifest = packedManifest(manifests[index] as Manifest, folder, rootManifest);
      writeFileSync(join(copy, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
    });
    cpSync(join(root, "conformance"), join(copies, "conformance/dist/suite"), { recursive: true });
    mkdirSync(destination, { recursive: true });
    const sources = folders.map((folder) => join(copies, basename(folder)));
    run("npm", "pack", "--silent", "--pack-destination", destination, ...sources);
  } finally {
    rmSync(copies, { recursive: true, force: true });
  }
}

function printCommands(): void {
  console.log(`Packed into ${destination}:`);
  for (const manifest of manifests) console.log(`  ${tarballOf(manifest)}`);
  console.log("\nRun one of these commands in the folder of your application:");
  for (const { name } of manifests)
    console.log(`\n# ${name}\n${installCommand(name, manifests, destination)}`);
}

import { copyFileSync, cpSync, readFileSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";

/**
 * Prepares the package in the current folder for `npm pack`: removes the files of an earlier build, so that the tarball
 * contains no deleted module, and copies the files whose only source is the root of the repository.
 */
const root = fileURLToPath(new URL("../", import.meta.url));
const { name } = JSON.parse(readFileSync("package.json", "utf8"));

rmSync("dist", { recursive: true, force: true });
copyFileSync(`${root}LICENSE`, "LICENSE");
if (name === "@halyard/conformance")
  cpSync(`${root}conformance`, "dist/suite", { recursive: true });

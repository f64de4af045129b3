import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const projectRoot = fileURLToPath(new URL("../..", import.meta.url));
export const cacheDir = join(projectRoot, ".cache");
export const resultsDir = join(projectRoot, "bench/results");
export const benchmarksPage = join(projectRoot, "docs/benchmarks.md");
export const peersDir = join(projectRoot, "bench/peers");

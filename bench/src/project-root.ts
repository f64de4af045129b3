import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** Where the project lies, and what the benchmarks need of it. */
export const projectRoot = fileURLToPath(new URL("../..", import.meta.url));
export const cacheDir = join(projectRoot, ".cache");
export const migrationsDir = join(projectRoot, "services/management/migrations");
export const resultsDir = join(projectRoot, "bench/results");
export const benchmarksPage = join(projectRoot, "docs/benchmarks.md");

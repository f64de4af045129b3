import type { Config } from "jest";
import { releases } from "../releases.ts";

// biome-ignore lint/style/noDefaultExport: Jest requires the global teardown as a default export.
export default async function globalTeardown({ watch, watchAll }: Config): Promise<void> {
  // The runs of `--watch` share the servers. Their guards stop them when Jest ends.
  if (watch === true || watchAll === true) return;
  for (const release of releases.splice(0).reverse()) await release();
}

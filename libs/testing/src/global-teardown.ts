import { releases } from "./releases.ts";

// biome-ignore lint/style/noDefaultExport: Jest requires the global teardown as a default export.
export default async function globalTeardown(): Promise<void> {
  for (const release of releases.splice(0).reverse()) await release();
}

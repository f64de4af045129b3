import { rmSync } from "node:fs";

/** Function of the global teardown that ends something that the global setup started. Both run in the same process. */
export type Release = () => Promise<void>;

const holder = globalThis as { halyardTestReleases?: Release[] };
holder.halyardTestReleases ??= [];

export const releases: Release[] = holder.halyardTestReleases;

export function removeTemporary(directory: string): void {
  rmSync(directory, { recursive: true, force: true });
}

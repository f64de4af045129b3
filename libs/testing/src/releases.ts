import { rmSync } from "node:fs";

/** What the global setup started and the global teardown ends; both run in the same process. */
export type Release = () => Promise<void>;

const holder = globalThis as { halyardTestReleases?: Release[] };
holder.halyardTestReleases ??= [];

export const releases: Release[] = holder.halyardTestReleases;

export function removeTemporary(directory: string): void {
  rmSync(directory, { recursive: true, force: true });
}

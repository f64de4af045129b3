import { type StatsFs, statfsSync } from "node:fs";
import { type Finding, ok, problem, warning } from "./finding.ts";

const minFreeShare = 0.1;
/** Below this share, a burst of writes can fill the disk before anybody has freed space. */
const minFreeShareNow = 0.05;

/** Checks the free space of the file system with a folder. */
export function checkDisk(folder: string): Finding {
  return judgeDisk(folder, statfsSync(folder));
}

export function judgeDisk(
  folder: string,
  { bavail, blocks, bsize }: Pick<StatsFs, "bavail" | "blocks" | "bsize">,
): Finding {
  const free = bavail / blocks;
  const text = `${Math.round((bavail * bsize) / 1e9)} GB are free where ${folder} is (${Math.round(free * 100)}%)`;
  if (free >= minFreeShare) return ok("disk", text);
  const advice = "Free space. PostgreSQL and NATS stop when the disk is full.";
  return free < minFreeShareNow ? problem("disk", text, advice) : warning("disk", text, advice);
}

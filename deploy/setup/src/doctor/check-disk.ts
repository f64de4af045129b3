import { statfsSync } from "node:fs";
import { type Finding, ok, warning } from "./finding.ts";

const minFreeShare = 0.1;

/** Checks the free space of the file system with a folder. */
export function checkDisk(folder: string): Finding {
  const { bavail, blocks, bsize } = statfsSync(folder);
  const free = bavail / blocks;
  const text = `${Math.round((bavail * bsize) / 1e9)} GB are free where ${folder} is (${Math.round(free * 100)}%)`;
  return free >= minFreeShare
    ? ok("disk", text)
    : warning("disk", text, "Free space. PostgreSQL and NATS stop when the disk is full.");
}

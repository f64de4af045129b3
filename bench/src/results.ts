import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Outcome } from "./benchmark.ts";
import type { Machine } from "./machine.ts";
import { profilesDir, resultsDir } from "./project-root.ts";

/** The figures of a benchmark, with the command and the machine that produced them. */
export type Result = Outcome & {
  benchmark: string;
  measuredAt: string;
  command: string;
  machine: Machine;
};

/** A CPU profile of a benchmark, with the command and the machine that produced it. */
export type SavedProfile = Pick<Result, "benchmark" | "measuredAt" | "command" | "machine"> & {
  /** Markdown. */
  profile: string;
};

export function saveResult(result: Result): void {
  save(resultsDir, result);
}

export function saveProfile(profile: SavedProfile): void {
  save(profilesDir, profile);
}

/** Saved results by benchmark. */
export function readResults(): ReadonlyMap<string, Result> {
  return readAll<Result>(resultsDir);
}

export function readProfiles(): ReadonlyMap<string, SavedProfile> {
  return readAll<SavedProfile>(profilesDir);
}

function save(directory: string, saved: { benchmark: string }): void {
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, `${saved.benchmark}.json`), `${JSON.stringify(saved, null, 2)}\n`);
}

function readAll<Saved extends { benchmark: string }>(
  directory: string,
): ReadonlyMap<string, Saved> {
  if (!existsSync(directory)) return new Map();
  const files = readdirSync(directory).filter((name) => name.endsWith(".json"));
  const all = files.map((name) => JSON.parse(readFileSync(join(directory, name), "utf8")) as Saved);
  return new Map(all.map((saved) => [saved.benchmark, saved]));
}

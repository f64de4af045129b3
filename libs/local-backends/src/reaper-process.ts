import { rmSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { hasCode } from "./files.ts";
import { isSameProcessRunning } from "./process-identity.ts";
import type { ReaperNote } from "./reaper.ts";

/** Time for processes to stop: longer than the 20 s within which every service stops after SIGTERM. */
const TIMEOUT_MS = 25_000;
const POLL_INTERVAL_MS = 50;

type ProcessNote = Extract<ReaperNote, { kind: "process" }>;

/**
 * Reads notes until the launcher ends, then stops the processes in them. All processes receive their signals at the
 * same time, so that their ports are free soon. Each process tolerates the loss of any other.
 */
async function main(): Promise<void> {
  const notes: ReaperNote[] = [];
  for await (const line of createInterface({ input: process.stdin })) {
    notes.push(JSON.parse(line) as ReaperNote);
  }
  remove(notes, "file");
  const processes = notes.filter((note) => note.kind === "process");
  for (const note of processes) send(note, note.stopSignal);
  const deadline = Date.now() + TIMEOUT_MS;
  while (anyRunning(processes) && Date.now() < deadline) await delay(POLL_INTERVAL_MS);
  for (const note of processes) send(note, "SIGKILL");
  while (anyRunning(processes) && Date.now() < deadline + TIMEOUT_MS) await delay(POLL_INTERVAL_MS);
  remove(notes, "directory");
}

function remove(notes: ReaperNote[], kind: "file" | "directory"): void {
  for (const note of notes) {
    if (note.kind === kind) rmSync(note.path, { recursive: kind === "directory", force: true });
  }
}

function anyRunning(notes: ProcessNote[]): boolean {
  return notes.some((note) => isSameProcessRunning(note.identity));
}

function send(note: ProcessNote, signal: NodeJS.Signals): void {
  if (!isSameProcessRunning(note.identity)) return;
  try {
    process.kill(note.identity.pid, signal);
  } catch (error) {
    // The process may end, or change its user, between the check and the signal.
    if (!hasCode(error, "ESRCH", "EPERM")) throw error;
  }
}

// Signals for the launcher's session must not end the reaper.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});
await main();

import { rmSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { hasCode } from "./files.ts";
import { isSameProcessRunning } from "./process-identity.ts";
import type { ReaperNote } from "./reaper.ts";

/** Longer than the 20 s within which every service drains after SIGTERM. */
const TIMEOUT_MS = 25_000;
const POLL_INTERVAL_MS = 50;

type ProcessNote = Extract<ReaperNote, { kind: "process" }>;

/**
 * Reads notes until the launcher is gone, then stops what was named. All processes get their signal
 * at once: each of them is built to survive the loss of any other, and a user who killed the
 * launcher wants the ports back soon.
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
    // It may end, or lose our right to signal it, between the look and the signal.
    if (!hasCode(error, "ESRCH", "EPERM")) throw error;
  }
}

// Signals meant for the launcher's session must not take its safety net along.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});
await main();

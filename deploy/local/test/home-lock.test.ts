import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { StartError } from "@halyard/local-backends";
import { describe, expect, it } from "@jest/globals";
import { lockHome } from "../src/home-lock.ts";
import { throwawayDirectories } from "./throwaway.ts";

const throwawayDirectory = throwawayDirectories();

const parent = throwawayDirectory();
const newHome = () => mkdtempSync(join(parent, "home-"));
const own = { launcherPid: process.pid, onStep: () => {} };

describe("given a free home", () => {
  it("is locked until the lock is released", async () => {
    const home = newHome();

    const lock = await lockHome(home, own);
    await expect(lockHome(home, own)).rejects.toThrow(StartError);
    lock.release();

    (await lockHome(home, own)).release();
  });

  it("is locked by exactly one of several concurrent attempts", async () => {
    const home = newHome();

    const attempts = await Promise.allSettled(Array.from({ length: 8 }, () => lockHome(home, own)));

    expect(attempts.filter((attempt) => attempt.status === "fulfilled")).toHaveLength(1);
  });
});

describe("given a run whose launcher was killed", () => {
  it("is locked until the process of the run has ended", async () => {
    const home = newHome();
    const launcher = await endedProcess();
    const run = await lockInProcess(home, launcher);
    const steps: string[] = [];

    const locking = lockHome(home, { ...own, onStep: (text) => steps.push(text) });
    expect(steps).toEqual([expect.stringContaining("waiting")]);
    run.kill("SIGKILL");

    (await locking).release();
  });
});

async function endedProcess(): Promise<number> {
  const child = spawn(process.execPath, ["--version"], { stdio: "ignore" });
  await once(child, "exit");
  return child.pid ?? 0;
}

/** Starts a process that holds the lock until it is killed. */
async function lockInProcess(home: string, launcherPid: number): Promise<ChildProcess> {
  const module = new URL("../src/home-lock.ts", import.meta.url);
  const program = `
    const { lockHome } = await import("${module}");
    await lockHome("${home}", { launcherPid: ${launcherPid}, onStep() {} });
    console.log("locked");
    setInterval(() => {}, 1000);
  `;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(child.stdout, "data");
  return child;
}

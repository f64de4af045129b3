import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { identifyProcess, StartError } from "@halyard/local-backends";
import { describe, expect, it } from "@jest/globals";
import { lockHome } from "../src/home-lock.ts";
import { throwawayDirectories } from "./throwaway.ts";

const throwawayDirectory = throwawayDirectories();

const parent = throwawayDirectory();
const newHome = () => mkdtempSync(join(parent, "home-"));
const own = { reaperPid: process.pid, onStep: () => {} };

/** Starts a process that does nothing until it is killed, in the role of a launcher or its reaper. */
function idleProcess() {
  const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" });
  const identity = identifyProcess(child.pid ?? 0);
  const kill = async () => {
    child.kill("SIGKILL");
    await once(child, "exit");
  };
  return { identity, kill };
}

describe("given a free home", () => {
  it("is locked until the lock is released, and contains no file afterwards", async () => {
    const home = newHome();

    const lock = await lockHome(home, own);
    await expect(lockHome(home, own)).rejects.toThrow(StartError);
    lock.release();

    expect(readdirSync(home)).toEqual([]);
    (await lockHome(home, own)).release();
  });

  it("is locked by exactly one of several concurrent attempts", async () => {
    const home = newHome();

    const attempts = await Promise.allSettled(Array.from({ length: 8 }, () => lockHome(home, own)));

    expect(attempts.filter((attempt) => attempt.status === "fulfilled")).toHaveLength(1);
  });
});

describe("given the lock of a launcher that was killed", () => {
  it("is taken over when that launcher's reaper has ended", async () => {
    const home = newHome();
    const launcher = idleProcess();
    const reaper = idleProcess();
    const holder = { launcher: launcher.identity, reaper: reaper.identity };
    writeFileSync(join(home, "lock"), JSON.stringify(holder));
    await launcher.kill();
    const steps: string[] = [];

    const locking = lockHome(home, { ...own, onStep: (text) => steps.push(text) });
    expect(steps).toEqual([expect.stringContaining("waiting")]);
    await reaper.kill();

    (await locking).release();
    expect(existsSync(join(home, "lock"))).toBe(false);
  });

  it("is taken over when its process id has been reused by another process", async () => {
    const home = newHome();
    const other = { pid: process.pid, startedAt: "another time" };
    writeFileSync(join(home, "lock"), JSON.stringify({ launcher: other, reaper: other }));

    (await lockHome(home, own)).release();
  });

  it("is taken over when it was only partly written", async () => {
    const home = newHome();
    writeFileSync(join(home, "lock"), '{"launcher":');

    (await lockHome(home, own)).release();
  });
});

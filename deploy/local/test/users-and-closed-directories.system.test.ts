import { execFileSync } from "node:child_process";
import { chownSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { findNatsServer } from "@halyard/local-backends";
import { programs } from "@halyard/testing/programs";
import { describe, expect, it } from "@jest/globals";
import { launchHalyard, PROJECT_DIR, prepareLaunches } from "./launcher.ts";
import { throwawayDirectories } from "./throwaway.ts";

prepareLaunches();
const throwawayDirectory = throwawayDirectories();

/**
 * Starts as root and as an ordinary user, each with a home in a directory that other users cannot read. Tests in
 * libs/local-backends cover a project in such a directory.
 */
const DAEMON = { uid: idOf("-u"), gid: idOf("-g") };

function idOf(kind: "-u" | "-g"): number {
  return Number(execFileSync("id", [kind, "daemon"], { encoding: "utf8" }));
}

async function startsBelow(closed: string, user?: { uid: number; gid: number }): Promise<void> {
  const binary = await findNatsServer({ cacheDir: join(PROJECT_DIR, ".cache") });
  const halyard = launchHalyard({
    home: join(closed, "home"),
    variables: { PATH: `${dirname(binary)}:${process.env.PATH}` },
    ...(user && { user }),
  });
  const demo = await halyard.ready();
  const response = await fetch(`${demo.base_url}/api/v1/flags`, {
    headers: { authorization: `Bearer ${demo.server_key}` },
  });
  expect(response.status).toBe(200);
  expect(await halyard.end("SIGTERM")).toBe(0);
}

describe("given the current user and a home in a directory closed to others", () => {
  it("starts and stops", async () => {
    await startsBelow(throwawayDirectory(0o700));
  });
});

const describeAsRoot = programs.severalUsers.isMissing ? describe.skip : describe;

describeAsRoot("given an ordinary user and a home in a directory closed to others", () => {
  it("starts and stops", async () => {
    const closed = throwawayDirectory(0o700);
    chownSync(closed, DAEMON.uid, DAEMON.gid);
    mkdirSync(join(closed, "home"), { mode: 0o700 });
    chownSync(join(closed, "home"), DAEMON.uid, DAEMON.gid);

    await startsBelow(closed, DAEMON);
  });
});

describeAsRoot("given a user's home after a start as root", () => {
  it("prints the command that gives the data to that user", async () => {
    const home = throwawayDirectory(0o755);
    chownSync(home, DAEMON.uid, DAEMON.gid);
    writeFileSync(join(home, "credentials.json"), "{}", { mode: 0o600 });

    const halyard = launchHalyard({ home, user: DAEMON });

    expect(await halyard.exited).toBe(1);
    expect(halyard.output()).toContain(`sudo chown -R "$(id -un)" '${home}'`);
    expect(halyard.output()).not.toContain("Choose another");
  });
});

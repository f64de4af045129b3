import { utimesSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { eventually, launchHalyard, PROJECT_DIR } from "./launcher.ts";
import { isRunning } from "./process-tree.ts";
import { throwawayDirectory } from "./throwaway.ts";

const LAUNCHER = {
  program: process.execPath,
  args: [join(PROJECT_DIR, "deploy/local/src/main.ts"), "--watch"],
};

/** A new time of change, and nothing else, so that the sources stay as they are. */
function touch(path: string): void {
  const now = new Date();
  utimesSync(join(PROJECT_DIR, path), now, now);
}

describe("given that sources are watched", () => {
  it("restarts the service whose sources change, at the same address, and no other", async () => {
    const halyard = launchHalyard({ home: join(throwawayDirectory(), "home"), command: LAUNCHER });
    const before = await halyard.ready();

    touch("services/management/src/main.ts");
    await eventually("the restart", () => halyard.output().includes("✓ management restarted"));

    const after = await halyard.ready();
    expect(after.services.management?.url).toBe(before.services.management?.url);
    expect(after.services.management?.pid).not.toBe(before.services.management?.pid);
    expect(after.services["sdk-edge"]).toEqual(before.services["sdk-edge"]);
    const flags = await fetch(`${after.base_url}/api/v1/flags`, {
      headers: { authorization: `Bearer ${after.server_key}` },
    });
    expect(flags.status).toBe(200);
  });

  it("shows the death of a service and waits for the next change instead of ending", async () => {
    const halyard = launchHalyard({ home: join(throwawayDirectory(), "home"), command: LAUNCHER });
    const { services } = await halyard.ready();

    process.kill(services["sdk-edge"]?.pid ?? 0, "SIGKILL");
    await eventually("the notice", () => halyard.output().includes("Waiting for a change."));
    expect(isRunning(services.management?.pid ?? 0)).toBe(true);

    touch("services/sdk-edge/src/main.ts");
    await eventually("the restart", () => halyard.output().includes("✓ sdk-edge restarted"));
    expect(await halyard.end("SIGTERM")).toBe(0);
  });
});

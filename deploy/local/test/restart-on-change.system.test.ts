import { readFileSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "@jest/globals";
import {
  type Demo,
  eventually,
  type Halyard,
  launchHalyard,
  PROJECT_DIR,
  prepareLaunches,
} from "./launcher.ts";
import { throwawayDirectories } from "./throwaway.ts";

prepareLaunches();
const throwawayDirectory = throwawayDirectories();

const LAUNCHER = {
  program: process.execPath,
  // The first start removes demo keys, and the demo data are created afterwards.
  args: [join(PROJECT_DIR, "deploy/local/src/main.ts"), "--watch", "--remove-demo-keys"],
};

/** Changes the modification time of a file, and not its content. */
function touch(path: string): void {
  const now = new Date();
  utimesSync(join(PROJECT_DIR, path), now, now);
}

/** `npm run chaos` touches the migrations of every service, `npm test` those of one service. */
const isThorough = process.env.HALYARD_THOROUGH_TESTS === "true";

describe("given watched sources", () => {
  let halyard: Halyard;
  let before: Demo;

  beforeAll(async () => {
    const home = join(throwawayDirectory(), "home");
    halyard = launchHalyard({ home, command: LAUNCHER, untilFileEnds: true });
    before = await halyard.ready();
  });

  it("restarts only the service whose sources change, at the same address; demo keys stay valid", async () => {
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

  it("runs changed migrations, and then restarts their services", async () => {
    const changed = [
      {
        service: "scheduler",
        migration: "0001_schedules.sql",
        path: "/api/v1/schedules",
        nothing: /^\{"schedules":\[\],"next_cursor":null\}$/,
      },
      {
        service: "webhook-dispatcher",
        migration: "0001_webhooks.sql",
        path: `/api/v1/projects/${before.project_id}/webhooks`,
        nothing: /^\{"webhooks":\[\]\}$/,
      },
      {
        service: "usage-metering",
        migration: "0001_usage.sql",
        path: "/api/v1/usage",
        nothing: /^\{"plan":"pro"/,
      },
    ];
    const touched = isThorough ? changed : changed.slice(0, 1);
    for (const { service, migration } of touched)
      touch(`services/${service}/migrations/${migration}`);
    for (const { service, path, nothing } of touched) {
      await eventually(`the restart of the ${service}`, () =>
        halyard.output().includes(`✓ ${service} restarted`),
      );
      const { base_url, server_key, services } = await halyard.ready();
      expect(services[service]?.url).toBe(before.services[service]?.url);
      const log = join(halyard.home, `logs/${service}-migrate.log`);
      expect(readFileSync(log, "utf8")).toContain(`${service}: nothing to do`);
      const headers = { authorization: `Bearer ${server_key}` };
      await eventually("it answers", async () => {
        const answer = await fetch(base_url + path, { headers });
        return answer.ok && nothing.test(await answer.text());
      });
    }
  });

  it("reports the death of a service and waits for the next change instead of ending the run", async () => {
    process.kill(before.services["sdk-edge"]?.pid ?? 0, "SIGKILL");
    await eventually("the notice", () => halyard.output().includes("Waiting for a change."));

    touch("services/sdk-edge/src/main.ts");
    await eventually("the restart", () => halyard.output().includes("✓ sdk-edge restarted"));
    expect(await halyard.end("SIGTERM")).toBe(0);
  });
});

import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "@jest/globals";
import { folder } from "./rendered-overlay.ts";

/** Tests of `roll-out` with a fake kubectl, which records its arguments and prints the states of the Jobs. */
const directories: string[] = [];
afterEach(() => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true });
});

function rollOut(options: { failing?: string } = {}) {
  const directory = mkdtempSync(join(tmpdir(), "halyard-roll-out-"));
  directories.push(directory);
  const calls = join(directory, "calls");
  writeFileSync(
    join(directory, "kubectl"),
    `#!/bin/sh
echo "$*" >> '${calls}'
case "$*" in
  *"get job"*component=setup*) echo "setup SuccessCriteriaMet,Complete" ;;
  *"get job"*component=migration*)
    echo "migrate-management SuccessCriteriaMet,Complete"
    echo "migrate-scheduler ${options.failing === undefined ? "Complete" : "FailureTarget,Failed"}" ;;
  *"get statefulset"*) echo statefulset/nats ;;
  *"get deployment"*) echo deployment/management; echo deployment/sdk-edge ;;
  *logs*) echo "${options.failing}" ;;
esac
`,
  );
  chmodSync(join(directory, "kubectl"), 0o755);
  const { status, stderr } = spawnSync("sh", [join(folder, "roll-out"), "an/overlay"], {
    env: { PATH: `${directory}:${process.env.PATH}` },
    encoding: "utf8",
  });
  const steps = readFileSync(calls, "utf8")
    .split("\n")
    .filter((call) => /apply|delete|rollout|get job/.test(call))
    .map((call) =>
      call.replace("--namespace halyard ", "").replace(/ --(no-headers|timeout).*/, ""),
    );
  return { status, stderr, steps };
}

const component = "app.kubernetes.io/component";

describe("roll-out", () => {
  it("replaces the Jobs, then applies backends and setup, migrations and services in this order", () => {
    expect(rollOut()).toEqual({
      status: 0,
      stderr: "",
      steps: [
        `delete job --selector ${component} in (setup,migration) --ignore-not-found`,
        `apply -k an/overlay --selector ${component} notin (migration,service)`,
        "rollout status",
        `get job --selector ${component}=setup`,
        `apply -k an/overlay --selector ${component}=migration`,
        `get job --selector ${component}=migration`,
        "apply -k an/overlay",
        "rollout status",
        "rollout status",
      ],
    });
  });

  it("stops before the services if a migration fails, and prints its log", () => {
    const { status, stderr, steps } = rollOut({ failing: "column is missing" });
    expect(status).toBe(1);
    expect(stderr).toBe(
      "The Job migrate-scheduler failed. The end of its log:\ncolumn is missing\n",
    );
    expect(steps.at(-1)).toBe(`get job --selector ${component}=migration`);
  });
});

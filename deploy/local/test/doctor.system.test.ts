import { execFile } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { findFreePort } from "@halyard/local-backends";
import { urlFor } from "@halyard/postgres";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import postgres from "postgres";
import {
  type Demo,
  type Halyard,
  launchHalyard,
  PROJECT_DIR,
  prepareLaunches,
} from "./launcher.ts";
import { throwawayDirectories } from "./throwaway.ts";

prepareLaunches();
const throwawayDirectory = throwawayDirectories();

type Finding = { check: string; status: string; text: string; advice?: string };
type Variables = Record<string, string>;
type Result = { code: number; stdout: string; stderr: string };

/** Runs `npm run doctor` with no more than the given variables. */
async function runDoctor(variables: Variables, ...args: string[]): Promise<Result> {
  const program = join(PROJECT_DIR, "deploy/setup/src/doctor.ts");
  const env = { PATH: process.env.PATH, ...variables };
  return promisify(execFile)(process.execPath, [program, ...args], { env, cwd: PROJECT_DIR }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    ({ code, stdout, stderr }: Result) => ({ code, stdout, stderr }),
  );
}

describe("given the doctor and a system of npm start", () => {
  let halyard: Halyard;
  let demo: Demo;
  let variables: Variables;

  beforeAll(async () => {
    const home = join(throwawayDirectory(), "home");
    halyard = launchHalyard({ home, untilFileEnds: true });
    demo = await halyard.ready();
    variables = JSON.parse(readFileSync(join(home, "doctor.json"), "utf8"));
  });

  /** Returns what needs attention. The variables replace those of the system. */
  async function findings(changed: Variables = {}): Promise<Finding[]> {
    const { stdout, stderr } = await runDoctor({ ...variables, ...changed }, "--json");
    expect(stderr).toBe("");
    return (JSON.parse(stdout) as Finding[]).filter(({ status }) => status !== "ok");
  }

  it("finds it by HALYARD_HOME, and nothing to do", async () => {
    const { code, stdout } = await runDoctor({ HALYARD_HOME: halyard.home });
    expect(stdout).toMatch(/\d\d checks: 0 problems, \d warnings\n$/);
    expect(stdout).toContain("ok       streams: 9 streams have their settings and 1 replica");
    expect(code).toBe(0);
  });

  it("keeps its credentials where only their owner can read them", () => {
    expect(statSync(join(halyard.home, "doctor.json")).mode & 0o777).toBe(0o600);
  });

  it("may not read keys' digests, users or flags", async () => {
    const sql = postgres(variables.POSTGRES_URL ?? "", { max: 1 });
    try {
      for (const query of [
        "select secret_sha256 from management.api_keys",
        "select * from management.users",
        "select * from management.flags",
        "update management.api_keys set expires_at = now()",
        "create table management.theirs ()",
      ])
        await expect(sql.unsafe(query)).rejects.toMatchObject({ code: "42501" });
    } finally {
      await sql.end();
    }
  });

  const wrongPassword = () => ({ NATS_PASSWORD: "wrong" });
  const closedPort = () => findFreePort("127.0.0.1");
  it.each([
    ["NATS", wrongPassword, "nats", "Authorization Violation"],
    [
      "PostgreSQL",
      async () => ({ POSTGRES_URL: `postgres://doctor:wrong@127.0.0.1:${await closedPort()}/x` }),
      "postgresql",
      "ECONNREFUSED",
    ],
    [
      "the gateway",
      async () => ({ BASE_URL: `http://127.0.0.1:${await closedPort()}` }),
      "gateway",
      "ECONNREFUSED",
    ],
  ])(
    "reports that %s cannot be reached, and checks everything else",
    async (_, change, check, reason) => {
      const [only, ...others] = await findings(await change());
      expect(only).toMatchObject({
        check,
        status: "problem",
        text: expect.stringContaining(reason),
      });
      expect(only?.advice).toMatch(/^Check /);
      expect(others).toEqual([]);
    },
  );

  it("reports streams with fewer replicas than the setting", async () => {
    // An old NATS server is a finding too.
    const found = await findings({ JETSTREAM_REPLICAS: "3" });
    expect(found).toContainEqual(
      expect.objectContaining({
        check: "streams",
        status: "problem",
        text: expect.stringContaining("FLAG_EVENTS has replicas: 1 instead of 3"),
      }),
    );
  });

  it("reports a key that ends within two weeks, by its name", async () => {
    const path = `projects/${demo.project_id}/environments/${demo.environment_id}/keys`;
    const expiresAt = new Date(Date.now() + 3 * 86_400_000).toISOString();
    const issued = await fetch(`${demo.base_url}/api/v1/${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${demo.server_key}`, "content-type": "application/json" },
      body: JSON.stringify({ kind: "client", name: "short-lived", expires_at: expiresAt }),
    });
    expect(issued.status).toBe(201);
    const [only] = await findings();
    expect(only).toMatchObject({ check: "keys", status: "warning" });
    expect(only?.text).toContain("short-lived");
    expect(only?.text).toContain(expiresAt);
  });

  describe("after the owner of a schema has admitted another service", () => {
    const asOwner = async (statement: string) => {
      const { owner_password: password } = JSON.parse(
        readFileSync(join(halyard.home, "credentials.json"), "utf8"),
      );
      const url = urlFor(variables.POSTGRES_URL ?? "", "halyard", "management_owner", password);
      const sql = postgres(url, { max: 1 });
      try {
        await sql.unsafe(statement);
      } finally {
        await sql.end();
      }
    };
    beforeAll(() => asOwner("grant usage on schema management to scheduler_service"));
    afterAll(() => asOwner("revoke usage on schema management from scheduler_service"));

    it("reports the grant, and exits with 1", async () => {
      expect(await findings()).toContainEqual(
        expect.objectContaining({
          check: "grants",
          text: expect.stringContaining("scheduler_service may use the schema management"),
        }),
      );
      expect((await runDoctor(variables)).code).toBe(1);
    });
  });

  it("reports a service whose only process hangs", async () => {
    const { pid } = demo.services.scheduler as { pid: number };
    process.kill(pid, "SIGSTOP");
    try {
      const found = (await findings()).find(({ check }) => check === "processes");
      expect(found?.text).toContain("no process of scheduler reports");
    } finally {
      process.kill(pid, "SIGCONT");
    }
  });
});

describe("given the doctor and no system", () => {
  it("says how to name one, and exits with 2", async () => {
    const { code, stderr } = await runDoctor({ HALYARD_HOME: throwawayDirectory() });
    expect(code).toBe(2);
    expect(stderr).toContain("Run npm start first, or name the folder in HALYARD_HOME.");
  });

  it("explains itself", async () => {
    const { code, stdout } = await runDoctor({}, "--help");
    expect(code).toBe(0);
    expect(stdout).toContain("npm run doctor -- --json");
  });
});

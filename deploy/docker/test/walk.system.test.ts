import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual, promisify } from "node:util";
import { findFreePort } from "@halyard/local-backends";
import { eventually } from "@halyard/testing";
import { programs } from "@halyard/testing/programs";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { commandsOf, sectionOf } from "../../../e2e/src/stories/page-blocks.ts";
import { projectRoot, readProjectFile } from "./compose-file.ts";

/**
 * Follows docs/deployment.md with a Docker engine, from the first command to a restored backup, in a copy of the
 * project. It takes minutes, so it runs only with the other tests that need an engine: TEST_BACKENDS=containers.
 */
const withEngine = programs.docker.isMissing ? describe.skip : describe;
const minutes = 60_000;

const page = readProjectFile("docs/deployment.md");
const shellBlocks = (heading: string) => commandsOf(sectionOf(page, heading));
const [start, ...variables] = shellBlocks("Docker Compose").map(({ commands }) => commands);
const firstSteps = ["First organization and keys", "First flag"]
  .flatMap(shellBlocks)
  .map(({ commands }) => commands);
const [upgrade] = shellBlocks("Upgrades").map(({ commands }) => commands);
const [backUp, restore, resume, verify] = shellBlocks("Backup and restore").map(
  ({ commands }) => commands,
);

withEngine("given a Docker engine and a fresh clone", () => {
  let directory: string;
  const project = `halyard-walk-${process.pid}`;
  let port: number;
  let keys: { server: string; client: string };

  function run(commands = ""): string {
    return execFileSync("sh", ["-euc", commands], {
      cwd: directory,
      encoding: "utf8",
      env: { ...process.env, COMPOSE_PROJECT_NAME: project },
      stdio: ["ignore", "pipe", "inherit"],
    });
  }

  /** Runs commands without blocking this process. */
  async function runBeside(commands: string): Promise<void> {
    const env = { ...process.env, COMPOSE_PROJECT_NAME: project };
    await promisify(execFile)("sh", ["-euc", commands], {
      cwd: directory,
      env,
      maxBuffer: 1 << 26,
    });
  }

  function ask(path: string, key: string, body?: object): Promise<Response> {
    return fetch(`http://127.0.0.1:${port}${path}`, {
      method: body === undefined ? "GET" : "POST",
      // A reused connection might lead to a gateway that has been replaced.
      headers: {
        authorization: `Bearer ${key}`,
        "content-type": "application/json",
        connection: "close",
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  }

  /** Returns the status of the response, or why there is none. */
  async function createFlag(key: string): Promise<number | string> {
    const answer = ask("/api/v1/flags", keys.server, { key, name: key, enabled: true });
    return answer.then(
      ({ status }) => status,
      (error: Error) => `${error.message}: ${error.cause}`,
    );
  }

  /** Returns the flags of each edge, requested from inside its container. */
  function flagsOfEdges(): string[][] {
    const program =
      "fetch('http://127.0.0.1:8080/api/v1/sdk/flags', { headers: { authorization: 'Bearer ' + process.argv[1] } })" +
      ".then((answer) => answer.text()).then(console.log)";
    return ["sdk-edge-1", "sdk-edge-2"].map((edge) => {
      const printed = run(`docker compose exec -T ${edge} node -e "${program}" ${keys.client}`);
      return Object.keys(JSON.parse(printed).flags);
    });
  }

  function setVariable(name: string, value: string): void {
    run(`sed -i 's/^${name}=.*/${name}=${value}/' .env`);
  }

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "halyard-walk-"));
    execFileSync("sh", ["-c", `git ls-files -z | tar -c --null -T - | tar -x -C '${directory}'`], {
      cwd: projectRoot,
    });
    port = await findFreePort("127.0.0.1");
  });
  afterAll(() => {
    run("docker compose down --volumes --timeout 5");
    rmSync(directory, { recursive: true, force: true });
  }, 2 * minutes);

  it(
    "starts with the page's two commands",
    () => {
      const [generate = "", ...up] = (start ?? "").trim().split("\n");
      run(generate);
      // The port of the page may be in use on this machine.
      setVariable("PORT", String(port));
      run(up.join("\n"));
    },
    15 * minutes,
  );

  it(
    "serves the first flag after the page's first steps",
    () => {
      const showKeys = `printf '%s\\n%s' "$SERVER_KEY" "$CLIENT_KEY"`;
      const [flags, server = "", client = ""] = run(
        `${[...variables, ...firstSteps].join("\n").replaceAll(":8080", `:${port}`)}\n${showKeys}`,
      ).split("\n");
      expect(flags).toBe('{"flags":{"new-checkout": true}}');
      keys = { server, client };
    },
    1 * minutes,
  );

  it("has the licenses of other packages in an image, and on the dashboard", async () => {
    const notices = run("docker compose exec -T management cat /halyard/THIRD-PARTY-LICENSES.txt");
    expect(notices).toMatch(/^fastify \S+ \(MIT\)$/m);
    const page = await fetch(`http://127.0.0.1:${port}/third-party-licenses.md`);
    expect(await page.text()).toMatch(/^## react - \S+ \(MIT\)$/m);
  });

  it("serves the dashboard and its scripts to a browser", async () => {
    const url = `http://127.0.0.1:${port}`;
    const page = await (await fetch(url, { headers: { accept: "text/html" } })).text();
    const [, script = ""] = /<script type="module" crossorigin src="([^"]+)"/.exec(page) ?? [];
    expect((await fetch(url + script)).headers.get("cache-control")).toContain("immutable");
  });

  it(
    "restarts every container whose process is killed, and loses no acknowledged flag",
    async () => {
      const names = run("docker compose ps --format '{{.Name}}'").trim().split("\n");
      expect(names).toHaveLength(10);
      const acknowledged = ["new-checkout"];
      for (const name of names) {
        const create = async (part: string) => {
          const created = (await createFlag(`${part}-${name}`)) === 201;
          if (created) acknowledged.push(`${part}-${name}`);
          return created;
        };
        const during = ["one", "two", "three"].map(create);
        process.kill(Number(run(`docker inspect --format '{{.State.Pid}}' ${name}`)), "SIGKILL");
        await Promise.all(during);
        let attempt = 0;
        await eventually(() => create(`again${++attempt}`), { withinMs: 1 * minutes });
      }
      await eventually(() => {
        const restarts = run(`docker inspect --format '{{.RestartCount}}' ${names.join(" ")}`);
        return restarts
          .trim()
          .split("\n")
          .every((count) => Number(count) > 0);
      });
      run("docker compose up --detach --wait");
      await eventually(() =>
        flagsOfEdges().every((flags) => acknowledged.every((key) => flags.includes(key))),
      );
      expect(run(verify)).toContain("The history is intact");
    },
    3 * minutes,
  );

  it(
    "upgrades with the page's commands while an edge serves without interruption",
    async () => {
      run("printf 'HALYARD_VERSION=0.1.1-next\\n' >> .env");
      const steps = (upgrade ?? "").trim().split("\n");
      const withGateway = steps.pop() ?? "";
      const polled = { answered: 0, failed: 0 };
      const count = (ok: boolean) => {
        polled[ok ? "answered" : "failed"] += 1;
      };
      const polling = setInterval(() => {
        void ask("/api/v1/sdk/flags", keys.client).then(
          ({ ok }) => count(ok),
          () => count(false),
        );
      }, 100);
      await runBeside(steps.join("\n"));
      clearInterval(polling);
      run(withGateway);
      expect(polled).toEqual({ answered: expect.any(Number), failed: 0 });
      expect(polled.answered).toBeGreaterThan(10);
      const images = run("docker compose ps --format '{{.Image}}'");
      expect(images.match(/:0\.1\.1-next/g)).toHaveLength(7);
    },
    10 * minutes,
  );

  it(
    "restores the backup over newer data, and after the loss of all data",
    async () => {
      run(backUp);
      const before = flagsOfEdges();
      for (const lose of ["true", "docker compose down --volumes"]) {
        expect(await createFlag(`newer-${lose.length}`)).toBe(201);
        run(lose);
        run(restore);
        run(resume);
        // An edge that keeps running serves the newer flag until management has rebuilt the snapshot.
        await eventually(() => isDeepStrictEqual(flagsOfEdges(), before));
        expect(run(verify)).toContain("The history is intact");
      }
    },
    8 * minutes,
  );

  it(
    "applies another operator token and another role password from .env",
    async () => {
      const token = "a".repeat(64);
      setVariable("OPERATOR_TOKEN", token);
      setVariable("MANAGEMENT_SERVICE_PASSWORD", "b".repeat(64));
      run("docker compose up --detach --wait");
      expect((await ask("/api/v1/organizations", token)).status).toBe(200);
    },
    3 * minutes,
  );

  it(
    "fails and names the job when the setup cannot succeed",
    () => {
      setVariable("POSTGRES_PASSWORD", "another");
      expect(() => run("docker compose up --detach --wait management 2>&1")).toThrow();
      expect(run("docker compose logs setup")).toContain(
        "PostgreSQL could not be prepared: password authentication failed",
      );
    },
    3 * minutes,
  );
});

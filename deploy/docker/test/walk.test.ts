import { execFileSync } from "node:child_process";
import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { findFreePort } from "@halyard/local-backends";
import { eventually } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { commandsOf, sectionOf } from "../../../e2e/src/page-blocks.ts";
import { projectRoot, readProjectFile } from "./compose-file.ts";

/**
 * docs/deployment.md with a Docker engine, from the first command to a restored backup, in a copy of the
 * project. It takes minutes, so it runs with the other tests that need an engine: TEST_BACKENDS=containers.
 */
const withEngine = process.env.TEST_BACKENDS === "containers" ? describe : describe.skip;
const minutes = 60_000;

const page = readProjectFile("docs/deployment.md");
const shellBlocks = (heading: string) => commandsOf(sectionOf(page, heading));
const [start, ...firstSteps] = shellBlocks("Docker Compose").map(({ commands }) => commands);
const [backUp, restore, verify] = shellBlocks("Backup and restore").map(({ commands }) => commands);

withEngine("given a Docker engine and a fresh clone", () => {
  const directory = mkdtempSync(join(tmpdir(), "halyard-walk-"));
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

  const readFlags = async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/sdk/flags`, {
      // A kept connection would be to a gateway that is gone.
      headers: { authorization: `Bearer ${keys.client}`, connection: "close" },
    });
    return { status: answer.status, body: await answer.json() };
  };
  async function createFlag(key: string): Promise<void> {
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/flags`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${keys.server}`,
        "content-type": "application/json",
        connection: "close",
      },
      body: JSON.stringify({ key, name: key, enabled: true }),
    });
    expect(answer.status).toBe(201);
  }

  const firstFlag = { status: 200, body: { flags: { "new-checkout": true } } };

  beforeAll(async () => {
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
      appendFileSync(join(directory, ".env"), `PORT=${port}\n`);
      run(up.join("\n"));
    },
    15 * minutes,
  );

  it(
    "serves the first flag after the page's first steps",
    () => {
      const showKeys = `printf '\\n%s\\n%s' "$SERVER_KEY" "$CLIENT_KEY"`;
      const [flags, server = "", client = ""] = run(`${firstSteps.join("\n")}\n${showKeys}`).split(
        "\n",
      );
      expect(flags).toBe('{"flags":{"new-checkout": true}}');
      keys = { server, client };
    },
    1 * minutes,
  );

  it(
    "restarts every container whose process is killed, and loses nothing",
    async () => {
      const names = run("docker compose ps --format '{{.Name}}'").trim().split("\n");
      expect(names).toHaveLength(9);
      for (const name of names)
        process.kill(Number(run(`docker inspect --format '{{.State.Pid}}' ${name}`)), "SIGKILL");
      await eventually(
        () =>
          run(`docker inspect --format '{{.RestartCount}}' ${names.join(" ")}`) === "1\n".repeat(9),
      );
      run("docker compose up --detach --wait");
      expect(await readFlags()).toEqual(firstFlag);
      expect(run(verify)).toContain("The history is whole");
    },
    3 * minutes,
  );

  it.each([
    { after: "newer data on the same machine", lose: "true" },
    { after: "the loss of all data", lose: "docker compose down --volumes" },
  ])(
    "restores the backup after $after",
    async ({ lose }) => {
      run(backUp);
      await createFlag("newer");
      run(lose);
      run(restore);
      // Edges keep running, and show the later flag until management has rebuilt the snapshot.
      await eventually(async () => isDeepStrictEqual(await readFlags(), firstFlag), {
        because: "edges show the restored flags",
      });
      expect(run(verify)).toContain("The history is whole");
    },
    5 * minutes,
  );
});

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { isThorough, startReceiver } from "@halyard/testing";
import { programs } from "@halyard/testing/programs";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type FilledTenant, fillTenant, idIn, idsOf } from "../src/stories/filled-tenant.ts";
import { startSystem } from "../src/system/system.ts";
import { createTenant, must, operatorToken } from "../src/system/tenancy.ts";

const projectRoot = fileURLToPath(new URL("../..", import.meta.url));

/** Programs in Python read the OpenAPI document. One of them sends generated requests for each operation. */
const generatingSeconds = isThorough ? 600 : 60;
/** A finding of schemathesis has some hundred characters, but an error in Python can have a source file. */
const maxOutput = 20_000;
const startsAndStopsMs = 240_000;
const describeWithPython = programs.python.isMissing ? describe.skip : describe;

/** Rate limits would answer most of the requests. */
const unlimited = {
  management: { KEY_REQUESTS_PER_SECOND: "100000", KEY_REQUESTS_BURST: "100000" },
};

/** schemathesis cannot write this media type. Uploads have CSV too. */
const withoutNdjson = (name: string, value: unknown) =>
  name === "application/x-ndjson" ? undefined : value;

const operatorPaths = "^/api/v1/(organizations|status)";

/**
 * Methods without a route are answered 404 by design. Beyond the schema, some values are rejected, such as times in the
 * past, so a valid body may be answered 400.
 */
const checks = [
  "not_a_server_error",
  "status_code_conformance",
  "content_type_conformance",
  "response_headers_conformance",
  "response_schema_conformance",
];

describeWithPython("given programs of other projects", () => {
  const directory = mkdtempSync(join(tmpdir(), "halyard-openapi-"));
  const documentFile = join(directory, "openapi.json");
  let gateway: string;
  let tenant: FilledTenant;
  let changesBefore: number;
  let close: () => Promise<void>;

  beforeAll(async () => {
    await run("python3", ["-m", "venv", directory]);
    const requirements = join(projectRoot, "e2e/openapi-tools.txt");
    await run(join(directory, "bin/pip"), ["install", "--quiet", "--requirement", requirements]);
    const receiver = await startReceiver();
    const counts = { managements: 1, schedulers: 1, dispatchers: 1, meterings: 1, edges: 1 };
    const system = await startSystem({ ...counts, settings: () => unlimited });
    close = async () => {
      await system.close();
      await receiver.close();
    };
    gateway = (await system.startGateway()).url;
    tenant = await fillTenant(await createTenant(gateway, { name: "Generated" }), {
      gateway,
      receiver: receiver.url,
    });
    changesBefore = await countChanges();
    const served = (await (await fetch(`${gateway}/openapi.json`)).json()) as Document;
    writeFileSync(documentFile, JSON.stringify(withIds(served, idsOf(tenant)), withoutNdjson));
  }, startsAndStopsMs);
  afterAll(async () => {
    await close?.();
    rmSync(directory, { recursive: true });
  });

  it("is valid for openapi-spec-validator", async () => {
    await run(join(directory, "bin/openapi-spec-validator"), [
      join(projectRoot, "docs/openapi.json"),
    ]);
  });

  // Streams are excluded, because their responses do not end.
  it.each([
    ["a server key", () => tenant.serverKey, ["--exclude-path-regex", `${operatorPaths}|/stream$`]],
    ["the operator token", () => operatorToken, ["--include-path-regex", operatorPaths]],
  ])(
    "answers the requests that schemathesis generates, with %s, as documented",
    async (_who, token, paths) => {
      await run(join(directory, "bin/schemathesis"), [
        ...["run", documentFile, "--url", gateway, ...paths],
        ...["--header", `Authorization: Bearer ${token()}`],
        ...["--max-time", String(generatingSeconds / 2), "--seed", "1", "--workers", "1"],
        ...["--checks", checks.join(), "--phases", "examples,coverage,fuzzing"],
        ...["--suppress-health-check", "all", "--generation-database", "none", "--no-color"],
      ]);
    },
    generatingSeconds * 1_000 + startsAndStopsMs,
  );

  it("has received generated changes of an existing flag", async () => {
    expect(await countChanges()).toBeGreaterThan(changesBefore);
  });

  /** Counts changes in the audit log, because a later generated request may delete the flag. */
  async function countChanges(): Promise<number> {
    const query = `flag_id=${tenant.flagId}&limit=1000`;
    const url = `${gateway}/api/v1/projects/${tenant.projectId}/changes?${query}`;
    const { changes } = await must(url, { key: operatorToken });
    return changes.filter(({ action }: { action: string }) => /^(?:settings|state)$/.test(action))
      .length;
  }

  /** Runs a program where it may leave files. Fails with its output unless it succeeds. */
  async function run(program: string, args: readonly string[]): Promise<void> {
    const child = spawn(program, args, { cwd: directory, stdio: ["ignore", "pipe", "pipe"] });
    const output = Promise.all([text(child.stdout), text(child.stderr)]);
    const [status] = await once(child, "close");
    if (status !== 0)
      throw new Error(`${program} failed:\n${(await output).join("\n").slice(-maxOutput)}`);
  }
});

type Document = {
  paths: Record<string, Record<string, { parameters?: { name: string; in: string }[] }>>;
};

/**
 * Returns the document with existing ids as the only values of path parameters, so that generated bodies reach the
 * resources. Deletions keep invented ids, because later requests need the resources.
 */
function withIds({ paths, ...document }: Document, ids: Record<string, string>): Document {
  for (const methods of Object.values(paths))
    for (const [method, { parameters = [] }] of Object.entries(methods))
      for (const parameter of parameters)
        if (parameter.in === "path" && method !== "delete")
          Object.assign(parameter, { schema: { enum: [idIn(ids, parameter.name)] } });
  return { ...document, paths };
}

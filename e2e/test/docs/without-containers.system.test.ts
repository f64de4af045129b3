import { spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import type { IncomingMessage } from "node:http";
import { get } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseEnv } from "node:util";
import {
  findFreePort,
  findHaproxy,
  findNatsServer,
  libraryVariables,
} from "@halyard/local-backends";
import { eventually, makeCertificates } from "@halyard/testing";
import { machinePostgresDir, programs } from "@halyard/testing/programs";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { followPage } from "../../src/stories/follow-page.ts";
import { commandsOf, sectionOf } from "../../src/stories/page-blocks.ts";
import { openPageShellOn, type PageShell } from "../../src/stories/page-shell.ts";
import { cacheDir } from "../../src/system/haproxy.ts";
import { type MachinePostgres, startMachinePostgres } from "../../src/system/machine-postgres.ts";
import { runUnits, type Units } from "../../src/system/systemd-units.ts";

/**
 * Follows docs/without-containers.md line by line, with PostgreSQL, NATS and HAProxy of this machine. The paths and ports
 * of the page are replaced by those of the test, and `systemctl` by processes with the commands of the units.
 */
const projectRoot = join(import.meta.dirname, "../../..");
const read = (name: string) => readFileSync(join(projectRoot, name), "utf8");
const page = read("docs/without-containers.md");
const unitNames = readdirSync(join(projectRoot, "deploy/systemd"))
  .filter((name) => name.endsWith(".service"))
  .map((name) => name.replace(".service", ""));
const root = mkdtempSync(join(tmpdir(), "halyard-units-"));
const etc = join(root, "etc");
const unitDir = join(root, "units");
afterAll(() => rmSync(root, { recursive: true, force: true }));

const pagePorts = ["443", "8080", "8081", "8082", "8083", "8084", "8085", "8086", "4222"].concat(
  Array.from({ length: 7 }, (_, index) => `${9101 + index}`),
);
const ports = new Map<string, number>();
let replacements: Readonly<Record<string, string>>;
let certificates: ReturnType<typeof makeCertificates>;
beforeAll(async () => {
  for (const port of pagePorts) ports.set(port, await findFreePort("127.0.0.1"));
  mkdirSync(unitDir);
  certificates = makeCertificates(root);
  replacements = {
    "npm run build --workspace services/dashboard": `npm run build --workspace services/dashboard -- --outDir ${root}/dashboard`,
    "node_modules/.bin/node": process.execPath,
    "/opt/halyard/node_modules/.bin/node": process.execPath,
    "/opt/halyard": projectRoot,
    "/etc/halyard": etc,
    "/etc/systemd/system/": `${unitDir}/`,
    "/var/cache/halyard-sdk-edge": root,
    "/usr/sbin/haproxy": await findHaproxy({ cacheDir }),
    "/usr/sbin/nats-server": await findNatsServer({ cacheDir }),
    "fullchain.pem": certificates.certFile,
    "privkey.pem": certificates.keyFile,
    "halyard.dump": join(root, "halyard.dump"),
    "halyard-secrets.env": join(root, "halyard-secrets.env"),
  };
});

/** Replaces the paths and ports of the page. The longest names come first. */
function here(text: string): string {
  const names = Object.keys(replacements).sort((one, other) => other.length - one.length);
  const paths = new RegExp(names.map((name) => name.replaceAll(".", "\\.")).join("|"), "g");
  const port = /(?<=PORT=|127\.0\.0\.1:|--port )\d{3,4}\b/g;
  return text
    .replace(paths, (name) => replacements[name] ?? name)
    .replace(port, (given) => `${ports.get(given) ?? given}`);
}

function rewrite(directory: string, suffix: string): void {
  for (const name of readdirSync(directory).filter((each) => each.endsWith(suffix)))
    writeFileSync(join(directory, name), here(readFileSync(join(directory, name), "utf8")));
}

const describeWithPostgres = programs.postgres.isMissing ? describe.skip : describe;

describeWithPostgres("docs/without-containers.md", () => {
  let database: MachinePostgres;
  let units: Units;
  let shell: PageShell;
  beforeAll(async () => {
    database = await startMachinePostgres(machinePostgresDir as string);
    units = runUnits({
      directory: unitDir,
      workingDirectory: projectRoot,
      environment: {
        ...libraryVariables(replacements["/usr/sbin/haproxy"] as string),
        STATE_DIRECTORY: join(root, "nats"),
        DASHBOARD_DIR: join(root, "dashboard"),
      },
    });
    shell = openPageShellOn(root);
    const variables = {
      ...database.variables,
      POSTGRES_ADDRESS: `127.0.0.1:${database.port}`,
      NATS_ADDRESS: `127.0.0.1:${ports.get("4222")}`,
    };
    await shell.run(
      [
        ...Object.entries(variables).map(([name, value]) => `${name}='${value}'`),
        `su() { sh -c "$3"; }`,
        `systemctl() { printf '%s\\n' "systemctl $*"; }`,
      ].join("\n"),
    );
  });
  afterAll(async () => {
    shell?.close();
    await units?.close();
    await database?.stop();
  });

  /** Runs the lines of a section. Each one is a command. */
  async function follow(heading: string): Promise<void> {
    for (const { commands } of commandsOf(sectionOf(page, heading)))
      for (const line of commands.trim().split("\n")) {
        const output = await shell.run(`cd '${projectRoot}'\n${here(line)}`);
        if (line.startsWith("cp -r deploy/systemd")) rewrite(unitDir, ".service");
        if (line.includes("tls.conf")) rewrite(join(unitDir, "halyard-gateway.service.d"), ".conf");
        if (line.includes("generate-environment"))
          for (const suffix of [".env", ".cfg"]) rewrite(etc, suffix);
        for (const [, args = ""] of output.matchAll(/^systemctl (.*)$/gm))
          await units.systemctl(args.split(" "));
      }
  }

  const ready = (unit: string, metricsPort: string) =>
    eventually(async () => (await fetch(metricsUrl(metricsPort))).ok).catch(() => {
      throw new Error(`${unit} is not ready:\n${units.log(unit)}`);
    });
  const metricsUrl = (port: string) => `http://127.0.0.1:${ports.get(port)}/readyz`;
  const apiUrl = () => `http://127.0.0.1:${ports.get("8080")}`;

  async function organizations(): Promise<string[]> {
    const text = await shell.run(
      `curl -fsS --retry 60 "$BASE_URL/api/v1/organizations" -H "Authorization: Bearer $OPERATOR_TOKEN"`,
    );
    return JSON.parse(text).organizations.map(({ id }: { id: string }) => id);
  }

  it("installs Halyard in the order of the page", async () => {
    for (const heading of ["Build the dashboard", "Create secrets and settings", "Start NATS"])
      await follow(heading);
    await follow("Prepare the database and the streams");
    await follow("Start the services");
    for (const [unit, port] of Object.entries(metricsPorts)) await ready(unit, port);
    const dashboard = await eventually(async () => {
      const response = await fetch(apiUrl(), { headers: { accept: "text/html" } });
      return response.ok && response.text();
    });
    expect(dashboard).toContain('<div id="root">');
  });

  it("has one server of HAProxy for each process", async () => {
    const metrics = await (await fetch(`http://127.0.0.1:${ports.get("9103")}/metrics`)).text();
    const servers = metrics.matchAll(/^haproxy_server_current_sessions{.*server="(.+?)"} /gm);
    // The edge is also in the backend of OFREP.
    expect([...servers].map(([, name]) => name)).toEqual(Array(7).fill("process-1"));
  });

  it("serves TLS", async () => {
    await follow("TLS");
    const address = { host: "localhost", family: 4, port: ports.get("443") };
    const ca = readFileSync(certificates.caFile);
    const status = eventually(async () => {
      const asked = get({ ...address, ca, headers: { accept: "text/html" } });
      const [response] = (await once(asked, "response")) as [IncomingMessage];
      response.resume();
      return response.statusCode;
    });
    expect(await status.catch(() => units.log("halyard-gateway"))).toBe(200);
  });

  it("leads to the first organization and flag", async () => {
    const deployment = read("docs/deployment.md");
    const steps = ["First organization and keys", "First flag"]
      .map((heading) => sectionOf(deployment, heading))
      .join("");
    expect(await followPage(shell, steps)).toBe(2);
  });

  it("restores a backup", async () => {
    const before = await organizations();
    await follow("Back up");
    await shell.run(`post /organizations "$OPERATOR_TOKEN" '{ "name": "Later", "plan": "free" }'`);
    expect(await organizations()).toHaveLength(before.length + 1);
    await follow("Restore");
    await ready("halyard-management", metricsPorts["halyard-management"]);
    expect(await organizations()).toEqual(before);
  });

  it("upgrades a running installation, whose gateway and NATS keep their processes", async () => {
    const before = await organizations();
    const processes = () => new Map(unitNames.map((name) => [name, units.pid(name)]));
    const former = processes();
    await follow("Upgrade");
    for (const [unit, port] of Object.entries(metricsPorts)) await ready(unit, port);
    const kept = [...processes()].filter(([name, pid]) => pid === former.get(name));
    expect(kept.map(([name]) => name)).toEqual(["halyard-gateway", "halyard-nats"]);
    expect(await organizations()).toEqual(before);
  });
});

const metricsPorts = {
  "halyard-management": "9101",
  "halyard-sdk-edge": "9102",
  "halyard-scheduler": "9104",
  "halyard-webhook-dispatcher": "9105",
  "halyard-usage-metering": "9106",
  "halyard-dashboard": "9107",
};

describe("given the files in deploy/systemd", () => {
  const generated = join(root, "generated");
  const generate = () => {
    const command = ["deploy/systemd/generate-environment", generated];
    expect(spawnSync("sh", command, { cwd: projectRoot }).status).toBe(0);
  };
  beforeAll(generate);

  /** Where the variables of an environment file are documented, if not in docs/configuration.md. */
  const sources: Readonly<Record<string, string>> = {
    "nats.env": "deploy/docker/nats-users.conf",
    "gateway.env": "deploy/gateway/haproxy/haproxy.cfg",
    "migrate.env": "docs/deployment.md",
  };

  it("every variable of an environment file exists", () => {
    const unknown = readdirSync(generated)
      .filter((name) => name.endsWith(".env") && name !== "secrets.env")
      .flatMap((file) => {
        const known = new Set(
          read(sources[file] ?? "docs/configuration.md").match(/[A-Z][A-Z_]+/g),
        );
        const names = Object.keys(parseEnv(readFileSync(join(generated, file), "utf8")));
        return names.filter((name) => !known.has(name)).map((name) => `${name} in ${file}`);
      });
    expect(unknown).toEqual([]);
  });

  it("every edge in SDK_EDGE_ADDRESSES is a server of HAProxy, also for OFREP", () => {
    appendFileSync(
      join(generated, "secrets.env"),
      "SDK_EDGE_ADDRESSES=127.0.0.1:8082,10.0.0.6:8082\n",
    );
    generate();
    const configuration = readFileSync(join(generated, "haproxy.cfg"), "utf8");
    const edges = configuration.match(/(?<=server process-\d )\S+:8082$/gm);
    const both = ["127.0.0.1:8082", "10.0.0.6:8082"];
    expect(edges).toEqual([...both, ...both]);
  });

  it.each(unitNames)("%s reads an environment file and stops in order", (name) => {
    const text = read(`deploy/systemd/${name}.service`);
    const [, file = ""] = /^EnvironmentFile=\/etc\/halyard\/(.*)$/m.exec(text) ?? [];
    expect(readdirSync(generated)).toContain(file);
    expect(text).toMatch(/^KillSignal=SIG(TERM|USR1)$/m);
  });

  const itWithSystemd = programs.systemdAnalyze.isMissing ? it.skip : it;
  itWithSystemd("systemd accepts the units", () => {
    const verified = join(root, "verified");
    spawnSync("cp", ["-r", join(projectRoot, "deploy/systemd"), verified]);
    rewrite(verified, ".service");
    const dropIns = join(verified, "halyard-gateway.service.d");
    mkdirSync(dropIns);
    copyFileSync(join(verified, "tls.conf"), join(dropIns, "tls.conf"));
    const { stdout, stderr } = spawnSync(
      "systemd-analyze",
      ["verify", ...unitNames.map((name) => join(verified, `${name}.service`))],
      { env: { ...process.env, SYSTEMD_UNIT_PATH: `${verified}:` }, encoding: "utf8" },
    );
    expect(stdout + stderr).toBe("");
  });
});

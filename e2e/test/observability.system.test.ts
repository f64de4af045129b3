import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { findFreePort, findPrometheus, startGuardedServer } from "@halyard/local-backends";
import { dashboards } from "@halyard/observability/dashboards";
import { call, eventually } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { parse } from "yaml";
import { cacheDir } from "../src/system/haproxy.ts";
import { type System, startSystem } from "../src/system/system.ts";
import { createTenant, type Tenant } from "../src/system/tenancy.ts";
import { createFlags } from "../src/traffic/changes.ts";

/** Rules and dashboards against Debian's Prometheus, which scrapes a real system. */
const rules = join(import.meta.dirname, "../../deploy/observability/prometheus");
const run = promisify(execFile);

describe("given promtool", () => {
  const promtool = async (...args: string[]) =>
    run(join(dirname(await findPrometheus({ cacheDir })), "promtool"), args, { cwd: rules });

  it("accepts the configuration and all rules", async () => {
    await promtool("check", "config", "prometheus.yml");
  });

  it("finds each alert quiet, firing and ended when its unit test says so", async () => {
    const { stdout, stderr } = await promtool("test", "rules", "alerts.test.yml");
    expect(`${stdout}${stderr}`).toContain("SUCCESS");
  });
});

describe("given a Prometheus that scrapes a system", () => {
  let system: System;
  let prometheus: Awaited<ReturnType<typeof startPrometheus>>;
  let tenant: Tenant;

  beforeAll(async () => {
    system = await startSystem({
      ...{ managements: 1, schedulers: 1, dispatchers: 1, meterings: 1, edges: 2 },
    });
    const gateway = await system.startGateway({ proxy: "haproxy" });
    const processes = [
      ...[system.managements, system.schedulers, system.dispatchers, system.meterings].flat(),
      ...system.edges.map(({ process }) => process),
      gateway,
    ];
    prometheus = await startPrometheus(processes.map(({ metricsUrl }) => new URL(metricsUrl).host));
    tenant = await createTenant(gateway.url, { name: "Observed" });
    await createFlags(gateway.url, tenant.serverKey, ["observed"]);
    await call(`${gateway.url}/api/v1/sdk/flags`, { key: tenant.clientKey });
  });
  afterAll(async () => {
    await prometheus?.stop();
    await system?.close();
  });

  it.each(dashboards.flatMap(({ title, panels }) => panels.map((panel) => ({ title, panel }))))(
    "answers the queries of $title, $panel.title",
    async ({ panel }) => {
      for (const { expression } of panel.queries)
        await prometheus.query(expression.replaceAll("$__rate_interval", "30s"));
    },
  );

  it.each([
    ["service:halyard_http_requests:rate5m", "management"],
    ["halyard_nats_connected", "sdk-edge"],
    ["halyard_nats_connected", "webhook-dispatcher"],
    ["halyard_snapshot_entries", "sdk-edge"],
    ["halyard_sdk_responses_total", "sdk-edge"],
    ["process_resident_memory_bytes", "scheduler"],
    ["nodejs_eventloop_lag_p99_seconds", "usage-metering"],
  ])("has %s of %s", async (metric, service) => {
    await eventually(() => prometheus.query(`${metric}{service="${service}"}`), {
      until: (series) => series.length > 0,
    });
  });

  it("has the metrics of HAProxy", async () => {
    await eventually(() => prometheus.query("haproxy_backend_active_servers"), {
      until: (series) => series.length > 0,
    });
  });
});

/** Starts Prometheus with the rules of the repository. It scrapes the given hosts every second. */
async function startPrometheus(targets: readonly string[]) {
  const directory = mkdtempSync(join(tmpdir(), "halyard-prometheus-"));
  const configuration = parse(readFileSync(join(rules, "prometheus.yml"), "utf8"));
  const file = join(directory, "prometheus.json");
  writeFileSync(
    file,
    JSON.stringify({
      global: { scrape_interval: "1s", evaluation_interval: "1s" },
      rule_files: configuration.rule_files.map((name: string) => join(rules, name)),
      scrape_configs: [{ job_name: "halyard", static_configs: [{ targets }] }],
    }),
  );
  const url = `http://127.0.0.1:${await findFreePort("127.0.0.1")}`;
  const prometheus = await startGuardedServer({
    command: await findPrometheus({ cacheDir }),
    args: [
      `--config.file=${file}`,
      `--storage.tsdb.path=${directory}/data`,
      `--web.listen-address=${new URL(url).host}`,
    ],
    logFile: `${directory}.log`,
    workingDirectory: directory,
    environment: {},
    stopSteps: [{ signal: "SIGTERM", timeoutMs: 10_000 }],
    throwawayDir: directory,
  });
  await eventually(async () => (await fetch(`${url}/-/ready`).catch(() => undefined))?.status, {
    until: (status) => status === 200,
  });
  return {
    async query(expression: string): Promise<unknown[]> {
      const response = await fetch(`${url}/api/v1/query?query=${encodeURIComponent(expression)}`);
      const { status, error, data } = (await response.json()) as {
        status: string;
        error?: string;
        data?: { result: unknown[] };
      };
      expect({ status, error }).toEqual({ status: "success", error: undefined });
      return data?.result ?? [];
    },
    stop: () => prometheus.stop(),
  };
}

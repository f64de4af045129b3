import { gzipSync } from "node:zlib";
import { startChromium } from "@halyard/testing/start-chromium";
import type { BrowserContext, Page } from "playwright-core";
import { ensureDashboard } from "../../../deploy/local/src/dashboard-build.ts";
import type { Bench, Benchmark, Outcome } from "../benchmark.ts";
import { insertFlags, openManagementTables } from "../growth/fill-tables.ts";
import type { Figure } from "../reporting/figure.ts";
import { startNats, startPostgres } from "../system/backends.ts";
import { startGateway, startManagement } from "../system/services.ts";
import { createTenant } from "../system/tenant.ts";
import { type FrameTimes, filterFrames, scrollFrames } from "./measure-frames.ts";

export const dashboardBenchmark: Benchmark = {
  name: "dashboard",
  pinned: false,
  summary: "the dashboard's first load, and its list of 5,000 flags in a browser",
  method:
    "Headless Chromium without a GPU opens the dashboard of a project with 5,000 flags in three environments, behind the gateway. " +
    "It scrolls through the list with the mouse wheel, and types into the search field. The browser draws 60 frames per second; a frame more than 25 ms after the previous one is late. " +
    "The browser draws on the processor, and other processes share it. So the baseline of scrolling is a plain page of the same height without scripts, and that of the search is a list with 50 flags, in the same run.",
  run,
};

const flags = 5_000;
const baselineFlags = 50;
const quickFlags = 60;
const goalFirstLoadKb = 250;
/** No frame is dropped, in percent. */
const goalOnTime = 100;

async function run(bench: Bench): Promise<Outcome> {
  const [nats, postgres] = await Promise.all([startNats(bench), startPostgres(bench)]);
  const management = await startManagement(bench, { postgres, nats, core: undefined });
  const { folder } = await ensureDashboard();
  const gateway = await startGateway(bench, {
    managementUrl: management.url,
    dashboardDir: folder,
  });
  const { context, close } = await startChromium();
  bench.afterwards(close);
  const sql = openManagementTables(bench, postgres);

  async function open(count: number): Promise<Page> {
    const tenant = await createTenant(management.url, 0);
    await insertFlags(sql, tenant, count);
    const page = await context.newPage();
    await page.goto(`${gateway.url}/favicon.svg`);
    await page.evaluate(
      (token) =>
        sessionStorage.setItem("halyard.keys", JSON.stringify({ tokens: [token], current: token })),
      tenant.serverKey,
    );
    await page.goto(`${gateway.url}/flags`);
    await page.getByText(`${count} flags`).first().waitFor();
    return page;
  }

  bench.say("the first load");
  const firstLoad = await readFirstLoad(gateway.url);
  bench.say(`a plain page, and a list of ${baselineFlags} flags`);
  const listed = bench.quick ? quickFlags : flags;
  const plain = await usePage(await openPlainPage(context, listed), scrollFrames);
  const few = await usePage(await open(baselineFlags), filterFrames);
  bench.say(`a list of ${listed} flags`);
  const scrolled = await usePage(await open(listed), scrollFrames);
  const filtered = await usePage(await open(listed), filterFrames);
  return {
    figures: [
      {
        what: "first load: scripts and styles, gzip",
        unit: "kB",
        measured: firstLoad / 1e3,
        goal: { of: "measured", below: goalFirstLoadKb },
      },
      ...framesOf("scrolling", scrolled, plain),
      ...framesOf("typing a search", filtered, few),
    ],
    notes: [],
    servers: { NATS: nats.version, Chromium: context.browser()?.version() ?? "" },
  };
}

function framesOf(what: string, measured: FrameTimes, baseline: FrameTimes): Figure[] {
  return [
    {
      what: `${what}: share of frames in time`,
      unit: "%",
      measured: measured.onTimeShare * 100,
      baseline: baseline.onTimeShare * 100,
      goal: { of: "measured", atLeast: goalOnTime },
    },
    {
      what: `${what}: 99th percentile of the time between frames`,
      unit: "ms",
      measured: measured.p99Ms,
      baseline: baseline.p99Ms,
    },
  ];
}

async function usePage<T>(page: Page, use: (page: Page) => Promise<T>): Promise<T> {
  const result = await use(page);
  await page.close();
  return result;
}

/** Opens a page of lines as high as the rows of a list. */
async function openPlainPage(context: BrowserContext, lines: number): Promise<Page> {
  const page = await context.newPage();
  const line = '<p style="height: 60px; margin: 0">inserted: a line of text</p>';
  await page.setContent(line.repeat(lines));
  return page;
}

/** Returns the compressed size of everything that the first page loads before it renders. */
async function readFirstLoad(url: string): Promise<number> {
  const html = await (await fetch(url, { headers: { accept: "text/html" } })).text();
  const paths = [...html.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, path]) => path);
  const sizes = paths.map(async (path) => {
    const response = await fetch(`${url}${path}`);
    return gzipSync(Buffer.from(await response.arrayBuffer())).length;
  });
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}

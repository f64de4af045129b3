import { gzipSync } from "node:zlib";
import { startChromium } from "@halyard/testing/start-chromium";
import type { Page } from "playwright-core";
import { ensureDashboard } from "../../../deploy/local/src/dashboard-build.ts";
import type { Bench, Benchmark } from "../benchmark.ts";
import { insertFlags } from "../growth/filled-management.ts";
import { atLeast, below } from "../reporting.ts";
import { quantile } from "../statistics.ts";
import { openTables, startBackends } from "../system/backends.ts";
import { startGateway, startManagement } from "../system/services.ts";
import { createTenant } from "../system/tenant.ts";

export const dashboardBenchmark: Benchmark = {
  name: "dashboard",
  pinned: false,
  summary: "the dashboard's first load, and its list of 5,000 flags in a browser",
  method:
    "Headless Chromium without a GPU opens the dashboard of a project with 5,000 flags in three environments, behind the gateway. It scrolls through the list with the mouse wheel, and types into the search field. The browser draws 60 frames per second; a frame more than 25 ms after the previous one is late. The browser draws on the processor, and other processes share it. So the baseline of scrolling is a plain page of the same height without scripts, and that of the search is a list with 50 flags, in the same run.",
  run,
};

const flags = 5_000;
const baselineFlags = 50;
const quickFlags = 60;

async function run(bench: Bench): Promise<void> {
  const backends = await startBackends(bench);
  const management = await startManagement(bench, backends);
  const { folder: dashboardDir } = await ensureDashboard();
  const gateway = await startGateway(bench, { managementUrl: management.url, dashboardDir });
  const { context, close } = await startChromium();
  bench.afterwards(close);
  bench.version("Chromium", context.browser()?.version() ?? "");
  const sql = openTables(bench, backends.postgres, "management");

  async function openList(page: Page, count: number): Promise<void> {
    const tenant = await createTenant(management.url, 0);
    await insertFlags(sql, tenant, count);
    await page.goto(`${gateway.url}/favicon.svg`);
    await page.evaluate(
      (token) =>
        sessionStorage.setItem("halyard.keys", JSON.stringify({ tokens: [token], current: token })),
      tenant.serverKey,
    );
    await page.goto(`${gateway.url}/flags`);
    await page.getByText(`${count} flags`).first().waitFor();
  }

  async function measure(
    open: (page: Page, count: number) => Promise<void>,
    count: number,
    use: (page: Page) => Promise<FrameTimes>,
  ): Promise<FrameTimes> {
    const page = await context.newPage();
    await open(page, count);
    const times = await use(page);
    await page.close();
    return times;
  }

  const firstLoad = await readFirstLoad(gateway.url);
  const listed = bench.quick ? quickFlags : flags;
  bench.say(`a plain page, and a list of ${baselineFlags} flags`);
  const plain = await measure(openPlainPage, listed, scrollFrames);
  const few = await measure(openList, baselineFlags, filterFrames);
  bench.say(`a list of ${listed} flags`);
  const scrolled = await measure(openList, listed, scrollFrames);
  const filtered = await measure(openList, listed, filterFrames);
  bench.figure("first load: scripts and styles, gzip", "kB", firstLoad / 1e3, { goal: below(250) });
  frameFigures(bench, "scrolling", scrolled, plain);
  frameFigures(bench, "typing a search", filtered, few);
}

function frameFigures(bench: Bench, what: string, ...sides: [FrameTimes, FrameTimes]): void {
  // No frame is dropped.
  bench.compare(`${what}: share of frames in time`, "%", sides, "onTimePercent", atLeast(100));
  bench.compare(`${what}: 99th percentile of the time between frames`, "ms", sides, "p99Ms");
}

/** Opens a page of lines as high as the rows of a list. */
function openPlainPage(page: Page, lines: number): Promise<void> {
  const line = '<p style="height: 60px; margin: 0">inserted: a line of text</p>';
  return page.setContent(line.repeat(lines));
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

type FrameTimes = {
  /** Percentage of punctual frames. */
  onTimePercent: number;
  /** Time between two frames, 99th percentile. */
  p99Ms: number;
};

/** Headless Chromium draws 60 frames a second. */
const frameMs = 1_000 / 60;
const wheelSteps = 120;
const wheelPixels = 400;
const searched = "inserted-49";

function scrollFrames(page: Page): Promise<FrameTimes> {
  return recordFrames(page, async () => {
    for (let step = 0; step < wheelSteps; step += 1) await page.mouse.wheel(0, wheelPixels);
  });
}

/** Types a search, waits for the flags that match, then deletes it, one key at a time. */
function filterFrames(page: Page): Promise<FrameTimes> {
  const awaitText = (text: RegExp) => page.getByText(text).first().waitFor();
  return recordFrames(page, async () => {
    await page.getByRole("searchbox").focus();
    for (const character of searched) await page.keyboard.press(character);
    await awaitText(/^[\d,]+ of [\d,]+ flags$/);
    for (const _ of searched) await page.keyboard.press("Backspace");
    await awaitText(/^[\d,]+ flags$/);
  });
}

type Recorder = { frames: number[]; isRecording: boolean };

/** Records the times of frames in the page while it is used. */
async function recordFrames(page: Page, use: () => Promise<void>): Promise<FrameTimes> {
  await page.evaluate(() => {
    const recorder: Recorder = Object.assign(globalThis, { frames: [], isRecording: true });
    const note = (time: number) => {
      recorder.frames.push(time);
      if (recorder.isRecording) requestAnimationFrame(note);
    };
    requestAnimationFrame(note);
  });
  await use();
  const frames = await page.evaluate(() => {
    const recorder = globalThis as unknown as Recorder;
    recorder.isRecording = false;
    return recorder.frames;
  });
  const intervals = frames.slice(1).map((time, index) => time - (frames[index] as number));
  const onTime = intervals.filter((interval) => interval <= 1.5 * frameMs).length;
  return { onTimePercent: (100 * onTime) / intervals.length, p99Ms: quantile(intervals, 0.99) };
}

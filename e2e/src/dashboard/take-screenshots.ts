import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startChromium } from "@halyard/testing/start-chromium";
import type { BrowserContext } from "playwright-core";
import type { Demo } from "../system/launched.ts";
import { createExample } from "./example-data.ts";

/**
 * `npm run screenshots`: photographs the main pages of the dashboard, of a Halyard that runs by `npm start`. It creates
 * an organization with example data, and deletes it at the end.
 */
const help = `npm run screenshots -- [--home .halyard] [--out .cache/screenshots] [name…]

Takes screenshots of the dashboard of a running "npm start", in light and dark colors, wide and narrow.
A name is a page, or a page with its colors and width. The images of the documents:

  npm run screenshots -- --out docs/images flags-light-wide targeting-dark-wide

Pages: `;

const pages = {
  flags: { path: "/flags", ready: "8 flags" },
  targeting: { path: "/flags/new-checkout", ready: "Staff" },
  history: { path: "/flags/new-checkout/history", ready: "grace@acme.example" },
  schedules: { path: "/schedules", ready: "black-friday-banner" },
  compare: { path: "/compare?from=staging&to=production", ready: "new-checkout" },
  audit: { path: "/history", ready: "bulk-orders" },
  webhooks: { path: "/webhooks", ready: "Deployments channel" },
  usage: { path: "/usage", ready: "The even share of the limit" },
  keys: { path: "/keys", ready: "Grace's key" },
} as const;
type PageName = keyof typeof pages;

const sizes = { wide: { width: 1280, height: 800 }, narrow: { width: 360, height: 740 } } as const;
const sizeNames = ["wide", "narrow"] as const;
const themes = ["light", "dark"] as const;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    home: { type: "string", default: ".halyard" },
    out: { type: "string", default: ".cache/screenshots" },
    help: { type: "boolean", default: false },
  },
});
const known = Object.keys(pages) as PageName[];
const all = known.flatMap((page) =>
  themes.flatMap((theme) => sizeNames.map((size) => ({ page, theme, size }))),
);
type Shot = (typeof all)[number];
const nameOf = ({ page, theme, size }: Shot) => `${page}-${theme}-${size}`;
const isWanted = (shot: Shot) =>
  positionals.length === 0 || positionals.includes(shot.page) || positionals.includes(nameOf(shot));
if (values.help) console.log(help + known.join(", "));
else await takeAll(values.home, values.out, all.filter(isWanted));

async function takeAll(home: string, out: string, shots: readonly Shot[]): Promise<void> {
  const demoFile = join(home, "demo.json");
  if (!existsSync(demoFile)) throw new Error(`${demoFile} is missing. Start Halyard: npm start`);
  const demo = JSON.parse(readFileSync(demoFile, "utf8")) as Demo;
  mkdirSync(out, { recursive: true });
  const example = await createExample(demo);
  const { context, close } = await startChromium();
  try {
    for (const shot of shots) {
      const file = join(out, `${nameOf(shot)}.png`);
      await take(context, { url: demo.base_url, key: example.serverKey, file }, shot);
      console.log(file);
    }
  } finally {
    await close();
    await example.remove();
  }
}

async function take(
  context: BrowserContext,
  { url, key, file }: { url: string; key: string; file: string },
  { page: name, theme, size }: Shot,
): Promise<void> {
  const { path, ready } = pages[name];
  const page = await context.newPage();
  await page.setViewportSize(sizes[size]);
  await page.emulateMedia({ colorScheme: theme, reducedMotion: "reduce" });
  await page.goto(`${url}/favicon.svg`);
  await page.evaluate(
    (token) =>
      sessionStorage.setItem("halyard.keys", JSON.stringify({ tokens: [token], current: token })),
    key,
  );
  await page.goto(`${url}${path}`);
  await page.getByText(ready).first().waitFor();
  await page.getByText("Live", { exact: true }).waitFor({ state: "attached" });
  await page.screenshot({ path: file, animations: "disabled" });
  await page.close();
}

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { AxeResults } from "axe-core";
import type { Page } from "playwright-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Impacts that keep some people from using a page. */
const seriousImpacts: readonly unknown[] = ["serious", "critical"];

/**
 * React Aria announces a pending button by a reference to it, and removes the announcement after seven seconds. Until
 * then the reference may name a button of a dialog that was closed, which screen readers ignore.
 */
const exclude = ["[data-live-announcer]"];

/** Rules of WCAG 2.2 that axe does not check by default: targets have at least 24 pixels, or as much space. */
const rules = { "target-size": { enabled: true } };

const checks = `axe.run(${JSON.stringify({ exclude })}, ${JSON.stringify({ rules })})`;

/**
 * Minimum duration of a violation. On a busy machine, axe can see a page while its colors or elements change.
 */
const persistsMs = 2_000;

/**
 * Throws if axe finds a serious violation of WCAG in the page as it is shown, in light or in dark colors.
 */
export async function expectNoSeriousViolations(page: Page): Promise<void> {
  const found: string[] = [];
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    const deadlineMs = performance.now() + persistsMs;
    let violations = await seriousViolations(page);
    while (violations.length > 0 && performance.now() < deadlineMs)
      violations = await seriousViolations(page);
    found.push(...violations.map((violation) => `${colorScheme} ${violation}`));
  }
  await page.emulateMedia({ colorScheme: null, reducedMotion: null });
  if (found.length > 0)
    throw new Error(`Violations of accessibility rules:\n${found.join("\n\n")}`);
}

async function seriousViolations(page: Page): Promise<string[]> {
  await awaitTransitions(page);
  // The driver evaluates it, so that the content security policy of the page stays in force.
  await page.evaluate(axe);
  const result = await page.evaluate(checks).then(
    (value) => value as AxeResults,
    // Axe throws if an element leaves the page while axe reads it.
    (error: unknown) => `axe: ${String(error)}`,
  );
  if (typeof result === "string") return [result];
  return result.violations
    .filter(({ impact }) => seriousImpacts.includes(impact))
    .flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary }) => `${id}: ${html}\n${failureSummary}`),
    );
}

/** Waits until colors have changed. A finite animation ends, and the next frame shows the result. */
async function awaitTransitions(page: Page): Promise<void> {
  await page.evaluate(async () => {
    const nextFrame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    await nextFrame();
    const finite = document
      .getAnimations()
      .filter((animation) => animation.effect?.getComputedTiming().iterations !== Infinity);
    await Promise.allSettled(finite.map((animation) => animation.finished));
    // Transitions end with the next frames, even those of no duration.
    await nextFrame();
    await nextFrame();
  });
}

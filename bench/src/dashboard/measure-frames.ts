import type { Page } from "playwright-core";
import { quantile } from "../statistics.ts";

/** Frame times of a page in use. */
export type FrameTimes = {
  /** Share of punctual frames. */
  onTimeShare: number;
  /** Time between two frames, 99th percentile. */
  p99Ms: number;
};

/** Headless Chromium draws 60 frames a second. */
const frameMs = 1_000 / 60;

const wheelSteps = 120;
const wheelPixels = 400;
const searched = "inserted-49";

/** Scrolls the window with the mouse wheel. */
export function scrollFrames(page: Page): Promise<FrameTimes> {
  return recordFrames(page, async () => {
    for (let step = 0; step < wheelSteps; step += 1) await page.mouse.wheel(0, wheelPixels);
  });
}

/** Types a search, waits for the flags that match, then deletes it, one key at a time. */
export function filterFrames(page: Page): Promise<FrameTimes> {
  return recordFrames(page, async () => {
    await page.getByRole("searchbox").focus();
    for (const character of searched) await page.keyboard.press(character);
    await page
      .getByText(/^[\d,]+ of [\d,]+ flags$/)
      .first()
      .waitFor();
    for (const _ of searched) await page.keyboard.press("Backspace");
    await page
      .getByText(/^[\d,]+ flags$/)
      .first()
      .waitFor();
  });
}

type Recorder = { frames: number[]; isRecording: boolean };

/** Records the times of frames in the page while it is used. */
async function recordFrames(page: Page, use: () => Promise<void>): Promise<FrameTimes> {
  await page.evaluate(() => {
    const recorder = Object.assign(globalThis as unknown as Recorder, {
      frames: [],
      isRecording: true,
    });
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
  return {
    onTimeShare: onTime / intervals.length,
    p99Ms: quantile(intervals, 0.99),
  };
}

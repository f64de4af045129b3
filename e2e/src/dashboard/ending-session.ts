import type { Page } from "playwright-core";

/** Reports to a page that its session ends in nine minutes, until the person signs in again. */
export async function endSoon(page: Page): Promise<void> {
  const endsAt = new Date(Date.now() + 9 * 60_000).toISOString();
  let endingSession: string | undefined;
  await page.route("**/api/v1/session", async (route) => {
    const response = await route.fetch();
    if (!response.ok()) return route.fulfill({ response });
    const session = await response.json();
    endingSession ??= session.signed_in_at;
    const isEnding = session.signed_in_at === endingSession;
    const json = isEnding ? { ...session, expires_at: endsAt } : session;
    return route.fulfill({ response, json });
  });
}

/** The field of a flag's targeting with the percentage of all users. */
export const percentageIn = (page: Page) =>
  page.getByRole("textbox", { name: /^Percentage of all users/ });

/** Changes the targeting of a flag, without saving it. */
export async function draftPercentage(page: Page, percentage: string): Promise<void> {
  await percentageIn(page).fill(percentage);
  await page.keyboard.press("Tab");
  await page.getByRole("button", { name: "Save changes" }).waitFor();
}

import type { Page } from "playwright-core";

/** Answers the first change as if the sign-in were too old. Returns the `Idempotency-Key` of every attempt. */
export async function rejectFirst(page: Page, url: RegExp): Promise<(string | undefined)[]> {
  const keys: (string | undefined)[] = [];
  await page.route(url, async (route) => {
    if (route.request().method() !== "POST") return route.fallback();
    keys.push(route.request().headers()["idempotency-key"]);
    if (keys.length > 1) return route.continue();
    const message = "Your sign-in is older than 30 minutes. Confirm it, and repeat the request.";
    const error = { code: "AUTH_003", category: "AUTH", status: 403, message };
    return route.fulfill({ status: 403, json: { error } });
  });
  return keys;
}

/** Sends the form that issues a key, which needs a recent sign-in. */
export async function issueKey(page: Page, name: string): Promise<void> {
  await page.getByRole("link", { name: "API keys" }).click();
  await page.getByRole("button", { name: "Issue key" }).click();
  await page.getByLabel("Name").fill(name);
  await page.getByRole("dialog").getByRole("button", { name: "Issue key" }).click();
}

import { describe, expect, it } from "@jest/globals";
import { localeOfPage } from "../src/ui/locale.ts";

describe("the locale of the page", () => {
  it.each([
    ["en-US", "en-US"],
    ["en", "en"],
    ["de-DE", "en-GB"],
    ["enq", "en-GB"],
  ])("in a browser of %s is %s", (browser, locale) => {
    expect(localeOfPage(browser)).toBe(locale);
  });
});

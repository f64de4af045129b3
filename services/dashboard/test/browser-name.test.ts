import { describe, expect, it } from "@jest/globals";
import { browserName } from "../src/account/browser-name.ts";

const engine = "AppleWebKit/537.36 (KHTML, like Gecko)";

describe("the name of a browser", () => {
  it.each([
    ["Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox on Linux"],
    [
      `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${engine} Chrome/140.0 Safari/537.36 Edg/140.0`,
      "Edge on Windows",
    ],
    [
      `Mozilla/5.0 (Linux; Android 15) ${engine} Chrome/140.0 Mobile Safari/537.36`,
      "Chrome on Android",
    ],
    [
      "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Version/19.0 Safari/605.1.15",
      "Safari on macOS",
    ],
    [
      "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 CriOS/140.0 Safari/604.1",
      "Chrome on iOS",
    ],
    ["curl/8.14.1", "Another program"],
    ["", "Another program"],
  ])("of %s is %s", (userAgent, name) => expect(browserName(userAgent)).toBe(name));
});

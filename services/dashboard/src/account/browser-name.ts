/** Each browser also names the ones that it descends from, so the order matters. */
const browsers: readonly (readonly [RegExp, string])[] = [
  [/\bEdgA?\//, "Edge"],
  [/\b(?:OPR|Opera)\//, "Opera"],
  [/\bSamsungBrowser\//, "Samsung Internet"],
  [/\b(?:Firefox|FxiOS)\//, "Firefox"],
  [/\b(?:Headless)?(?:Chrome|CriOS)\//, "Chrome"],
  [/\bSafari\//, "Safari"],
];

const systems: readonly (readonly [RegExp, string])[] = [
  [/\b(?:iPhone|iPad)\b/, "iOS"],
  [/\bAndroid\b/, "Android"],
  [/\bWindows\b/, "Windows"],
  [/\bMacintosh\b/, "macOS"],
  [/\bCrOS\b/, "ChromeOS"],
  [/\bLinux\b/, "Linux"],
];

/** Returns a browser and its system, such as "Firefox on Linux", by the header `User-Agent`. */
export function browserName(userAgent: string): string {
  const nameIn = (known: typeof browsers) => known.find(([sign]) => sign.test(userAgent))?.[1];
  const browser = nameIn(browsers) ?? "Another program";
  const system = nameIn(systems);
  return system === undefined ? browser : `${browser} on ${system}`;
}

import { describe, expect, it } from "@jest/globals";
import { parseNumber, parsePercentage } from "../src/ui/parse-number.ts";

describe("a typed number", () => {
  it.each([
    ["en-US", "2.5", 2.5],
    ["en-US", "-18", -18],
    ["en-US", "1.500", 1.5],
    ["en-US", "2,5", undefined],
    ["en-US", "1,500", undefined],
    ["de-DE", "2,5", 2.5],
    ["de-DE", "2.5", 2.5],
    ["de-DE", "1,500", 1.5],
    ["de-DE", "1.500", undefined],
    ["de-DE", "1.500,5", undefined],
    ["fr-FR", "33,3", 33.3],
    ["fr-FR", "33.3", 33.3],
    ["fr-FR", "1 500", undefined],
    ["fr-FR", "1\u202f500", undefined],
    ["ar-EG", "٢٫٥", 2.5],
    ["ar-EG", "٢.٥", 2.5],
    ["ar-EG", "25", 25],
    ["ar-EG", "۲۵", 25],
    ["ar-EG", "٢,٥", undefined],
    ["ar-EG", "١٬٥٠٠", undefined],
    ["ja-JP", "２５", 25],
    ["ja-JP", "２．５", 2.5],
    ["ja-JP", "２，５", undefined],
    ["en-US", "1e1", undefined],
    ["en-US", "0x10", undefined],
    ["en-US", "2.", undefined],
    ["en-US", "1.2.3", undefined],
    ["en-US", "", undefined],
  ])("in %s: %s is %s", (locale, text, expected) => {
    expect(parseNumber(text, locale)).toBe(expected);
  });
});

describe("a typed percentage", () => {
  it.each([
    ["en-US", "0", 0],
    ["de-DE", " 100 ", 100],
    ["de-DE", "25,0", 25],
    ["ar-EG", "٢٥", 25],
    ["ja-JP", "２５", 25],
    ["de-DE", "2.5", 2.5],
    ["de-DE", "2,5", 2.5],
    ["de-DE", "12,25", 12.25],
    ["en-US", "0.07", 0.07],
    ["en-US", "12.345", undefined],
    ["de-DE", "12,345", undefined],
    ["en-US", "33,3", undefined],
    ["en-US", "101", undefined],
    ["en-US", "-1", undefined],
    ["en-US", "1e1", undefined],
    ["en-US", "", undefined],
  ])("in %s: %s is %s", (locale, text, expected) => {
    expect(parsePercentage(text, locale)).toBe(expected);
  });
});

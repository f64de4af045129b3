import { describe, expect, it } from "@jest/globals";
import { parseTraceContext } from "../src/trace-context.ts";

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
const spanId = "00f067aa0ba902b7";
const valid = `00-${traceId}-${spanId}-01`;

describe("traceparent", () => {
  it.each([
    ["a sampled parent", valid, valid],
    ["a parent that is not sampled", `00-${traceId}-${spanId}-00`, `00-${traceId}-${spanId}-00`],
    ["flags that version 00 does not know", `00-${traceId}-${spanId}-ff`, valid],
    ["a later version", `01-${traceId}-${spanId}-01`, valid],
    ["a later version with more members", `cc-${traceId}-${spanId}-01-more-members`, valid],
  ])("is accepted: %s", (_what, given, expected) => {
    expect(parseTraceContext(given)).toEqual({ traceparent: expected });
  });

  it.each([
    ["no header", undefined],
    ["an empty header", ""],
    ["two headers", `${valid}, ${valid}`],
    ["more members in version 00", `${valid}-more`],
    ["version ff", `ff-${traceId}-${spanId}-01`],
    ["a trace id of zeros", `00-${"0".repeat(32)}-${spanId}-01`],
    ["a span id of zeros", `00-${traceId}-${"0".repeat(16)}-01`],
    ["upper case", valid.toUpperCase()],
    ["a short trace id", `00-${traceId.slice(1)}-${spanId}-01`],
    ["a line break at the end", `${valid}\n`],
    ["members without a separator", `01-${traceId}-${spanId}-01more`],
    ["a later version that is too long", `01-${traceId}-${spanId}-01-${"a".repeat(256)}`],
    ["a list", [valid]],
  ])("is ignored: %s", (_what, given) => {
    expect(parseTraceContext(given)).toBeUndefined();
  });
});

describe("tracestate", () => {
  const member = (index: number) => `k${index}=v`;

  it.each([
    ["one member", "vendor=value"],
    ["several members, with spaces between them", "a=1, tenant@vendor=x y,\tb_-*/=!~"],
    ["32 members", Array.from({ length: 32 }, (_, index) => member(index)).join(",")],
    ["an empty value", "a="],
  ])("is kept: %s", (_what, tracestate) => {
    expect(parseTraceContext(valid, tracestate)).toEqual({ traceparent: valid, tracestate });
  });

  it.each([
    ["an empty one", ""],
    ["no key", "=value"],
    ["a comma at the end", "a=1,"],
    ["an equals sign in the value", "a=1=2"],
    ["a key in upper case", "A=1"],
    ["33 members", Array.from({ length: 33 }, (_, index) => member(index)).join(",")],
    ["more than 512 characters", `a=${"x".repeat(250)},b=${"y".repeat(256)},c=1`],
    ["a line break", "a=1\r\nx: y"],
    ["a list", ["a=1"]],
  ])("is left out: %s", (_what, tracestate) => {
    expect(parseTraceContext(valid, tracestate)).toEqual({ traceparent: valid });
  });
});

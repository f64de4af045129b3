import { readDemo } from "./config.ts";
import { flagKey, toggleFlag } from "./demo-flags.ts";

/** Turns the flag of the examples on or off. */
const isOn = await toggleFlag(readDemo());
console.log(`${flagKey} is ${isOn ? "on" : "off"}`);

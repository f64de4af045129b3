import { type Refusal, refuse } from "@halyard/service";

/** Also the answer to who may not reach the project: to them there is nothing in it. */
export function noSuchEnvironment(): Refusal {
  return refuse("NOT_FOUND_001", "There is no such environment in this project.");
}

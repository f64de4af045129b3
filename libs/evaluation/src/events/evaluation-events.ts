/**
 * Events `feature_flag.evaluation` of OpenTelemetry's semantic conventions. The convention has one event for each
 * evaluation. A busy application would emit thousands a second, so equal results of a minute are one event with their
 * number.
 */

export type EvaluationEventsOptions = {
  /** A logger of OpenTelemetry, such as `logs.getLogger("shop")`. */
  logger: EventLogger;
  /** True: events contain the id of the user, and are counted for each user. Default: false. */
  contextId?: boolean | undefined;
};

/** The part of OpenTelemetry's `Logger` that is used. */
type EventLogger = { emit(event: EvaluationEvent): void };

type EvaluationEvent = {
  eventName: "feature_flag.evaluation";
  severityNumber: number;
  attributes: Record<string, string | number | boolean>;
  /** An empty context. Without it, all events would have the trace of the evaluation that started the timer. */
  context: EmptyContext;
};

type EmptyContext = {
  getValue(): undefined;
  setValue(): EmptyContext;
  deleteValue(): EmptyContext;
};

/** One evaluation. */
type Evaluated = {
  key: string;
  /** Key of the variation. Without one, the event has the value. */
  variant: string | null | undefined;
  value: unknown;
  /** A reason of the convention, such as `targeting_match`. */
  reason: string;
  /** A type of error of the convention, such as `flag_not_found`. */
  errorType?: string | undefined;
  errorMessage?: string | undefined;
  /** Version of the flag. */
  version?: number | undefined;
  /** Id of the user. */
  contextId?: string | undefined;
};

export type Surroundings = {
  /** Calls back once after a delay, and returns a function that cancels the call. */
  after(delayMs: number, callback: () => void): () => void;
  /** Writes a warning to the log of the application. */
  warn(message: string): void;
  /** Returns the ids of the project and the environment. Undefined before the first flags. */
  setId(): string | undefined;
};

const intervalMs = 60_000;
/**
 * Maximum number of counters, between two emissions, for results whose number the flags do not bound: of unknown flags,
 * with a default of the application, or for one user. It is below the default queue of OpenTelemetry's processor, 2,048.
 */
const maxOpenCounters = 2_000;
/** Longer texts, as a default of the application can be, are not in events. */
const maxTextLength = 256;
/** Number of emissions after a warning without another one: an hour. */
const quietEmissions = 60;
const severityOfInfo = 9;

const emptyContext: EmptyContext = {
  getValue: () => undefined,
  setValue: () => emptyContext,
  deleteValue: () => emptyContext,
};

type Value = string | number | boolean | undefined;
type Counter = { readonly evaluated: Evaluated; readonly value: Value; count: number };

/** Counts evaluations, and emits the counts of a minute together. */
export class EvaluationEvents {
  readonly #options: EvaluationEventsOptions;
  readonly #surroundings: Surroundings;
  /** Lists of counters by flag, or by flag, user and value, so that each list is short. */
  #counters = new Map<string, Counter[]>();
  #openCounters = 0;
  /** Set while there are counters. */
  #cancelEmission: (() => void) | undefined = undefined;
  /** Number of evaluations that are in no event, since the last warning, and the reason of the last one. */
  #lost = 0;
  #reasonOfLoss = "";
  #quietEmissions = 0;

  constructor(options: EvaluationEventsOptions, surroundings: Surroundings) {
    this.#options = options;
    this.#surroundings = surroundings;
  }

  /** True if the application asked for the ids of users. */
  get hasContextIds(): boolean {
    return this.#options.contextId === true;
  }

  count(evaluated: Evaluated): void {
    const { key, variant, contextId } = evaluated;
    const hasVariant = variant !== undefined && variant !== null;
    const isOpen = !hasVariant || contextId !== undefined;
    const value = hasVariant ? undefined : shownValue(evaluated.value);
    const listKey = isOpen ? `${key}\n${contextId}\n${value}` : key;
    const list = this.#counters.get(listKey);
    const known = list?.find((counter) => isSame(counter, evaluated, value));
    if (known !== undefined) {
      known.count += 1;
      return;
    }
    if (isOpen && this.#openCounters >= maxOpenCounters) {
      this.#lost += 1;
      this.#reasonOfLoss = `a minute had more than ${maxOpenCounters} users, defaults and errors`;
      return;
    }
    if (isOpen) this.#openCounters += 1;
    const counter = { evaluated, value, count: 1 };
    if (list === undefined) this.#counters.set(listKey, [counter]);
    else list.push(counter);
    this.#cancelEmission ??= this.#surroundings.after(intervalMs, () => this.flush());
  }

  /** Emits the counts so far. */
  flush(): void {
    this.#cancelEmission?.();
    this.#cancelEmission = undefined;
    const counters = this.#counters;
    this.#counters = new Map();
    this.#openCounters = 0;
    for (const list of counters.values()) for (const counter of list) this.#emit(counter);
    this.#warnOfLosses();
  }

  #emit(counter: Counter): void {
    try {
      this.#options.logger.emit({
        eventName: "feature_flag.evaluation",
        severityNumber: severityOfInfo,
        attributes: attributesOf(counter, this.#surroundings.setId()),
        context: emptyContext,
      });
    } catch (error) {
      this.#lost += counter.count;
      this.#reasonOfLoss = `the logger threw ${error instanceof Error ? error.name : typeof error}`;
    }
  }

  #warnOfLosses(): void {
    if (this.#quietEmissions > 0) this.#quietEmissions -= 1;
    else if (this.#lost > 0) {
      this.#surroundings.warn(`${this.#lost} evaluations are in no event: ${this.#reasonOfLoss}.`);
      this.#lost = 0;
      this.#quietEmissions = quietEmissions;
    }
  }
}

/** Returns the value that an event without a variation has. Undefined for a long text, and for what is no scalar. */
function shownValue(value: unknown): Value {
  if (typeof value === "string") return value.length <= maxTextLength ? value : undefined;
  return typeof value === "number" || typeof value === "boolean" ? value : undefined;
}

/** Compares results of the same list. */
function isSame(counter: Counter, evaluated: Evaluated, value: Value): boolean {
  const { evaluated: other } = counter;
  return (
    other.variant === evaluated.variant &&
    other.reason === evaluated.reason &&
    other.version === evaluated.version &&
    other.errorType === evaluated.errorType &&
    other.contextId === evaluated.contextId &&
    Object.is(counter.value, value)
  );
}

function attributesOf(
  { evaluated, value, count }: Counter,
  setId: string | undefined,
): EvaluationEvent["attributes"] {
  const { key, variant, reason, errorType, errorMessage, version, contextId } = evaluated;
  return {
    "feature_flag.key": key,
    "feature_flag.provider.name": "halyard",
    "feature_flag.result.reason": reason,
    ...(variant !== undefined && variant !== null && { "feature_flag.result.variant": variant }),
    ...(value !== undefined && { "feature_flag.result.value": value }),
    ...(version !== undefined && { "feature_flag.version": String(version) }),
    ...(setId !== undefined && { "feature_flag.set.id": setId }),
    ...(contextId !== undefined && { "feature_flag.context.id": contextId }),
    ...(errorType !== undefined && { "error.type": errorType }),
    ...(errorMessage !== undefined && { "feature_flag.error.message": errorMessage }),
    "halyard.evaluation.count": count,
  };
}

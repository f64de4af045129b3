import { z } from "zod";
import { variable } from "./environment.ts";

const endpoint = z
  .string()
  .refine((text) => ["http:", "https:"].includes(URL.parse(text)?.protocol ?? ""))
  .optional();

const wholeNumber = z
  .string()
  .regex(/^\d{1,7}$/)
  .transform(Number)
  .pipe(z.int().min(1));

const samplers = [
  ...(["parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio"] as const),
  ...(["always_on", "always_off", "traceidratio"] as const),
] as const;

/** A variable that OpenTelemetry reads and checks itself. */
const ofOpenTelemetry = (description: string, expects: string, secret = false) =>
  variable(z.string().optional(), { description, expects, secret });

/**
 * The standard variables of OpenTelemetry for traces, with its names and defaults. Its exporter also reads others, such as
 * `OTEL_EXPORTER_OTLP_TIMEOUT`, from the environment of the process.
 */
export const tracingVariables = {
  OTEL_EXPORTER_OTLP_ENDPOINT: variable(endpoint, {
    description:
      "Address of an OpenTelemetry collector, which receives traces at `/v1/traces` over OTLP/HTTP in JSON.",
    expects: "an address such as http://collector:4318",
    documentedDefault: "not set: no traces",
  }),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: variable(endpoint, {
    description: "The whole address for traces, instead of `OTEL_EXPORTER_OTLP_ENDPOINT`.",
    expects: "an address such as http://collector:4318/v1/traces",
  }),
  OTEL_EXPORTER_OTLP_HEADERS: ofOpenTelemetry(
    "Headers of the requests to the collector.",
    "`name=value` pairs, separated by commas",
    true,
  ),
  OTEL_RESOURCE_ATTRIBUTES: ofOpenTelemetry(
    "Attributes of the process, such as `deployment.environment.name=staging`.",
    "`name=value` pairs, separated by commas",
  ),
  OTEL_SERVICE_NAME: ofOpenTelemetry(
    "Name of the process in traces, by default its own.",
    "a name",
  ),
  OTEL_TRACES_SAMPLER: variable(z.enum(samplers).default("parentbased_always_on"), {
    description:
      "Which traces are sent. `parentbased_`: those whose caller sends them, and of those without a caller all, none, or a share.",
    expects: `one of ${samplers.join(", ")}`,
  }),
  OTEL_TRACES_SAMPLER_ARG: variable(
    z
      .string()
      .regex(/^(?:0(?:\.\d{1,9})?|1(?:\.0{1,9})?)$/)
      .transform(Number)
      .default(1),
    {
      description: "Share of traces for the samplers `traceidratio`.",
      expects: "a number from 0 to 1",
    },
  ),
  OTEL_BSP_SCHEDULE_DELAY: variable(wholeNumber.default(5_000), {
    description: "Interval of requests to the collector, in milliseconds.",
    expects: "a whole number from 1",
  }),
  OTEL_BSP_MAX_QUEUE_SIZE: variable(wholeNumber.default(2_048), {
    description: "Maximum number of spans that wait. Further spans are lost.",
    expects: "a whole number from 1",
  }),
  OTEL_TRACES_EXPORTER: variable(z.enum(["otlp", "none"]).default("otlp"), {
    description: "`none`: no traces, also with an endpoint.",
    expects: "otlp or none",
  }),
  OTEL_SDK_DISABLED: variable(
    z
      .string()
      .regex(/^(?:true|false)$/i)
      .transform((text) => text.toLowerCase() === "true")
      .default(false),
    { description: "`true`: no traces, also with an endpoint.", expects: "true or false" },
  ),
};

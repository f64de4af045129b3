/** Replaces `@halyard/tracing` in an edge without code for traces. Services start stripped, so this is plain JavaScript. */
const nothing = () => undefined;

export const startMessaging = nothing;
export const parseTraceContext = nothing;
export const startSpan = nothing;
export const currentSpan = nothing;
export const setTracer = nothing;
export const onTracesLost = nothing;
export const startTracing = async () => undefined;
export const stopTracing = async () => undefined;
export const isTracing = () => false;
export const traceFields = () => ({});
export const withSpan = (_span, work) => work();
export const inSpan = (_span, work) => work();
export const inStep = (_name, step) => step();

export * from "./channels.ts";
export * from "./check.ts";
export * from "./client.ts";
export * from "./electron.ts";
export * from "./envelope.ts";
export { HomingHttp, type HttpOptions } from "./http.ts";

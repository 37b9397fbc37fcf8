export * from "./channels.ts";
export * from "./check.ts";
export * from "./client.ts";
export * from "./electron.ts";

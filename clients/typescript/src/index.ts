export * from "./channels.ts";
export * from "./client.ts";

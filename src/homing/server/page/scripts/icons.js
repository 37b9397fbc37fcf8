// Line drawings on a 24-grid: one for each place of the page and each kind of device.

import { s } from "./dom.js";

const PATHS = {
  all: ["M12 3.5a8.5 8.5 0 1 1-8 5.6", "M13 8a4.2 4.2 0 1 1-5 3.2", "M12 12h.01"],
  skills: ["M14.7 6.3a4 4 0 0 0-5.3 5L4 16.7V20h3.3l5.4-5.4a4 4 0 0 0 5-5.3L15 12l-3-3z"],
  documents: ["M6 3.5h8l4.5 4.5v12.5h-12.500z", "M14 3.500v4.500h4.500", "M9 12.500h6.500M9 16h4.500"],
  memory: [
    "M5 7.500c0-2 3-3.500 7-3.500s7 1.500 7 3.500-3 3.500-7 3.500-7-1.500-7-3.500z",
    "M5 7.500v4.500c0 2 3 3.500 7 3.500s7-1.500 7-3.500V7.500",
    "M5 12v4.500c0 2 3 3.500 7 3.500s7-1.500 7-3.500V12",
  ],
  devices: ["M4 11.500 12 4.500l8 7", "M6 10v9.500h12V10", "M12 12.500a2 2 0 0 1 1 3.700v.8h-2v-.8a2 2 0 0 1 1-3.700z"],
  map: [
    "M5 18.500c2-6 4-3 6-7s5-5.500 8-6",
    "M7 8h.01M11 6.500h.01M8 12.500h.01M14 14.500h.01M17.500 12h.01M16 17.500h.01M11 17h.01",
  ],
  models: ["M12 3.500 20 8v8l-8 4.500L4 16V8z", "M12 12l8-4M12 12v8.500M12 12 4 8"],
  health: ["M4 12.500h3.500l2-5 4 9.500 2.200-4.500H20"],
  evaluation: ["M5 4.500v15h15", "M9 15.500v-4M13 15.500v-8M17 15.500v-6"],
  guide: ["M12 6.500c-2-1.500-4.500-2-8-2v13.500c3.500 0 6 .5 8 2 2-1.500 4.500-2 8-2V4.500c-3.500 0-6 .5-8 2z", "M12 6.500v13.500"],
  warn: ["M12 4 21 19.500H3z", "M12 10v4.500M12 17h.01"],
  check: ["M4.500 12.500l5 5 10-11"],
  cross: ["M6 6l12 12M18 6 6 18"],
  skip: ["M6 12h12"],
  theme: ["M12 4v16", "M12 4a8 8 0 1 0 0 16", "M12 4a8 8 0 0 1 0 16"],
  copy: ["M9 9h10.500v10.500H9z", "M15 9V4.500H4.500V15H9"],
  back: ["M14 6l-6 6 6 6"],
  up: ["M12 19V6M6.500 11 12 5.500 17.500 11"],
  folder: ["M4 18.500v-12h5.500l2 2.500H20v9.500z"],
  plus: ["M12 5v14M5 12h14"],

  light: ["M12 3.500a6 6 0 0 1 3.500 10.900V17h-7v-2.600A6 6 0 0 1 12 3.500z", "M9.500 20.500h5"],
  fan: [
    "M12 12c-1.500-3.500-1-7.500 1.500-8.500s4 2 2.500 4.500c-1 1.700-2.500 2.500-4 4z",
    "M12 12c3.800.5 7 2.800 6.500 5.500s-4 2.200-5.300-.4c-.9-1.700-.8-3.400-1.200-5.100z",
    "M12 12c-2.300 3-6 4.700-8.100 3s-.1-4.700 2.800-4.600c2 0 3.400 1 5.300 1.600z",
  ],
  climate: ["M3.500 6h17v7h-17z", "M6.500 10h11", "M7.500 16.500v3M12 16.500v3.500M16.500 16.500v3"],
  cover: ["M4 4.500h16", "M5.500 4.500v15c3-1 4.500-5 4.500-15", "M18.500 4.500v15c-3-1-4.500-5-4.500-15"],
  switch: ["M7 4h10v16H7z", "M12 8v4", "M10 16h4"],
  lock: ["M6 11h12v9H6z", "M8.500 11V8a3.500 3.500 0 0 1 7 0v3"],
  media: ["M4 5.500h16v10.500H4z", "M9 19.500h6"],
  sensor: ["M12 4v9.500a3.500 3.500 0 1 0 2.500 0V4z"],
  vacuum: ["M4 13a8 8 0 0 1 16 0c0 2-3.500 4-8 4s-8-2-8-4z", "M12 9.500v3"],
  camera: ["M4 8h11v9H4z", "M15 11l5-2.500v8L15 14"],
  scene: ["M12 4l2.200 5 5.300.5-4 3.600 1.200 5.300-4.700-2.800-4.700 2.800 1.200-5.300-4-3.600 5.300-.5z"],
  purifier: ["M7 4h10v16H7z", "M10 8h4M10 11h4", "M12 16h.01"],
  speaker: ["M7 3.500h10v17H7z", "M12 18a3.500 3.500 0 1 0 0-7 3.500 3.500 0 0 0 0 7z", "M12 7h.01"],
  valve: ["M12 3.500c3 4 5.500 7 5.500 10.500a5.500 5.500 0 0 1-11 0C6.500 10.500 9 7.500 12 3.500z"],
  device: ["M6 4h12v16H6z", "M12 16.500h.01"],
};

// The first that a type's name holds decides; homes call their types by many names.
const KINDS = [
  [/light|lamp|bulb|led|灯/, "light"],
  [/purif|dehumid|humid|净化|加湿|除湿/, "purifier"],
  [/fan|hood|vent|扇|新风/, "fan"],
  [/climate|aircon|condition|thermostat|heat|boiler|空调|暖|热水/, "climate"],
  [/cover|curtain|blind|shade|shutter|awning|帘/, "cover"],
  [/lock|door|gate|门|锁/, "lock"],
  [/speaker|audio|音/, "speaker"],
  [/media|tv|televis|projector|screen|电视|投影/, "media"],
  [/vacuum|robot|mower|扫/, "vacuum"],
  [/camera|doorbell|摄/, "camera"],
  [/valve|water|pump|sprinkler|阀|水/, "valve"],
  [/scene|script|routine|场景/, "scene"],
  [/sensor|thermometer|detector|传感|温度/, "sensor"],
  [/switch|outlet|plug|socket|开关|插/, "switch"],
];

export function icon(name, props = {}) {
  const paths = PATHS[name] ?? PATHS.device;
  return s(
    "svg",
    { viewBox: "0 0 24 24", "aria-hidden": "true", ...props },
    paths.map((d) => s("path", { d })),
  );
}

/** The drawing for a type of device, whatever the home calls it. */
export function deviceIcon(type, props) {
  const name = String(type ?? "").toLowerCase();
  return icon(KINDS.find(([words]) => words.test(name))?.[1] ?? "device", props);
}

// Elements from data. Whatever a person or a file says becomes a text node; nothing here reads markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element: `props` are attributes, `on` listeners, `dataset`; children are nodes, texts, or lists of them. */
export function h(tag, props = {}, ...children) {
  return filled(document.createElement(tag), props, children);
}

/** The same for a drawing. */
export function s(tag, props = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), props, children);
}

/** Replaces what is in an element. */
export function put(element, ...children) {
  element.replaceChildren(...children.flat(4).filter(shown));
  return element;
}

function filled(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (name === "dataset") {
      Object.assign(element.dataset, value);
    } else if (name === "value" || name === "disabled" || name === "checked") {
      element[name] = value;
    } else if (value === true) {
      element.setAttribute(name, "");
    } else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, String(value));
    }
  }
  element.append(...children.flat(4).filter(shown));
  return element;
}

function shown(child) {
  return child !== null && child !== undefined && child !== false;
}

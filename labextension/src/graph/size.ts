import * as React from 'react';

/** The width of an element in pixels, as it changes; 0 until it is laid out or while it is hidden. */
export function useWidth(element: React.RefObject<HTMLElement>): number {
  const [width, setWidth] = React.useState(0);
  React.useLayoutEffect(() => {
    const node = element.current;
    if (!node) {
      return;
    }
    const observer = new ResizeObserver(() => setWidth(node.clientWidth));
    observer.observe(node);
    setWidth(node.clientWidth);
    return () => observer.disconnect();
  }, [element]);
  return width;
}

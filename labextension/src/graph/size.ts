import * as React from 'react';

/** The current width of an element in pixels; 0 before its layout and while it is hidden. */
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

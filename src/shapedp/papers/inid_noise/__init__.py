"""Independent, non-identical noise (Muthukrishnan and Kalyani): recipes and claims."""
